import Foundation
import SystemIO
import TestSupport
import Testing

/// Compares two trees: names, types, modes, owners, sizes, times to the nanosecond, links, extended
/// attributes, holes and bytes.
enum ChangeDetector {
  /// Expects two trees below a directory to be the same, except the metadata of their roots.
  static func expectSame(
    _ directory: TemporaryDirectory, _ expected: ByteString, _ actual: ByteString,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let found = try differences(directory, expected, actual)
    #expect(found.isEmpty, "\(found)", sourceLocation: sourceLocation)
  }

  /// Describes the differences, or is empty if there are none. Uses the benchmarks'
  /// `verify_tree.py` if it is available, otherwise `OddTree.listing`.
  static func differences(
    _ directory: TemporaryDirectory, _ expected: ByteString, _ actual: ByteString
  ) throws -> String {
    let script = Shared.path("bench/verify_tree.py")
    guard FileManager.default.fileExists(atPath: script) else {
      return try listedDifferences(directory, expected, actual)
    }
    let owner = Host.userID == 0 ? ["--owner"] : []
    let outcome = try Program.run(
      "python3", ["-B", script, "--max-print", "5"] + owner + ["\(expected)", "\(actual)"],
      in: directory.url, timeout: 1800)
    return outcome.code == 0 ? "" : "verify_tree.py: \(outcome.output)\(outcome.errors)"
  }

  private static func listedDifferences(
    _ directory: TemporaryDirectory, _ expected: ByteString, _ actual: ByteString
  ) throws -> String {
    let wanted = try listing(directory, expected)
    let found = try listing(directory, actual)
    let paths = Set(wanted.keys).union(found.keys).sorted()
    return paths.filter { wanted[$0] != found[$0] }.prefix(5).map { path in
      "\(path): \(wanted[path].map { "\($0)" } ?? "extra") -> "
        + (found[path].map { "\($0)" } ?? "missing")
    }.joined(separator: "\n")
  }

  /// The record of each entry. A hard-linked file whose other names are elsewhere counts as having
  /// one name.
  private static func listing(
    _ directory: TemporaryDirectory, _ path: ByteString
  ) throws -> [ByteString: TreeRecord] {
    let inner =
      path.isWithin(directory.path)
      ? ByteString(path.bytes.dropFirst(directory.path.count + 1)) : path
    var records = try OddTree.listing(directory, inner)
    let names = Dictionary(grouping: records.keys) { records[$0]?.firstName }
    for (name, all) in names where name != nil && all.count == 1 {
      for path in all { records[path]?.firstName = nil }
    }
    return records
  }
}
