import Foundation
import SystemIO
import TestSupport
import Testing

/// Compares two trees: names, types, modes, owners, sizes, times to the nanosecond, links, extended
/// attributes, holes and bytes.
enum TreeComparison {
  /// Two trees below a folder are the same, their roots' own metadata aside.
  static func expectSame(
    _ folder: TemporaryFolder, _ expected: ByteString, _ actual: ByteString,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try differences(folder, expected, actual) == "", sourceLocation: sourceLocation)
  }

  /// What differs, in words, nothing where all is the same. By the benchmarks' own program where it
  /// is, else by `OddTree.listing`.
  static func differences(
    _ folder: TemporaryFolder, _ expected: ByteString, _ actual: ByteString
  ) throws -> String {
    let script = Shared.path("bench/verify_tree.py")
    guard FileManager.default.fileExists(atPath: script) else {
      return try listedDifferences(folder, expected, actual)
    }
    let owner = Host.userID == 0 ? ["--owner"] : []
    let outcome = try Program.run(
      "python3", ["-B", script, "--max-print", "5"] + owner + ["\(expected)", "\(actual)"],
      in: folder.url, timeout: 1800)
    return outcome.code == 0 ? "" : "verify_tree.py: \(outcome.output)\(outcome.errors)"
  }

  private static func listedDifferences(
    _ folder: TemporaryFolder, _ expected: ByteString, _ actual: ByteString
  ) throws -> String {
    let wanted = try OddTree.listing(folder, expected)
    let found = try OddTree.listing(folder, actual)
    let paths = Set(wanted.keys).union(found.keys).sorted()
    return paths.filter { wanted[$0] != found[$0] }.prefix(5).map { path in
      "\(path): \(wanted[path].map { "\($0)" } ?? "extra") -> "
        + (found[path].map { "\($0)" } ?? "missing")
    }.joined(separator: "\n")
  }
}
