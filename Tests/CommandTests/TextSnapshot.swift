import Foundation
import TestSupport
import Testing

/// A text that is compared with a file of the package, so that changes of user-visible text are
/// noticed.
///
/// With `SANDBOXCTL_RECORD_SNAPSHOTS` set the files are written instead, and each test that changes
/// one fails: review the recorded text and run the tests again without it.
///
/// In a run over encrypted repositories, the text must be the same, except for the suffix `.age` of
/// objects, unless there is a file of that name in the directory `encrypted`.
enum TextSnapshot {
  private static let directory = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().appendingPathComponent("Snapshots", isDirectory: true)

  /// Returns the names of all recorded texts.
  static func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory.path)
      .filter { $0.hasSuffix(".txt") }.map { String($0.dropLast(4)) }
  }

  private static func file(_ name: String, isEncrypted: Bool) -> URL {
    directory.appendingPathComponent((isEncrypted ? "encrypted/" : "") + name + ".txt")
  }

  private static func stored(_ file: URL) -> String? {
    try? String(contentsOf: file, encoding: .utf8)
  }

  static func expect(
    _ text: String, is name: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let file = file(name, isEncrypted: TestEncryption.isOn)
    var (stored, found) = (stored(file), text)
    if stored == nil, TestEncryption.isOn {
      stored = Self.stored(Self.file(name, isEncrypted: false))
      found = text.replacing(/(\.tar\.zst|\.index|\.json)\.age\b/) { $0.output.1 }
    }
    if stored == found { return }
    if ProcessInfo.processInfo.environment["SANDBOXCTL_RECORD_SNAPSHOTS"] != nil {
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try text.write(to: file, atomically: true, encoding: .utf8)
      Issue.record("recorded \(file.lastPathComponent): read it", sourceLocation: sourceLocation)
      return
    }
    let difference = Self.difference(stored ?? "", found)
    Issue.record(
      "\(file.lastPathComponent) says otherwise (SANDBOXCTL_RECORD_SNAPSHOTS=1 records):\n\(difference)",
      sourceLocation: sourceLocation)
  }

  /// Returns at most six lines of each text from the first difference on.
  private static func difference(_ stored: String, _ text: String) -> String {
    let old = stored.components(separatedBy: "\n")
    let new = text.components(separatedBy: "\n")
    let same = zip(old, new).prefix { $0 == $1 }.count
    return "line \(same + 1)\n"
      + old.dropFirst(same).prefix(6).map { "- " + $0 + "\n" }.joined()
      + new.dropFirst(same).prefix(6).map { "+ " + $0 + "\n" }.joined()
  }
}
