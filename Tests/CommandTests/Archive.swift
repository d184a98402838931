import Foundation
import TestSupport
import Testing

/// Checks of a pack by standard programs.
enum Archive {
  /// Checks that a pack is named by its BLAKE2b-256, and that its content, which `age` decrypts if
  /// the repository is encrypted, passes `zstd -t`, and is listed by GNU tar and bsdtar without a
  /// message on standard error.
  static func check(_ pack: String) throws {
    let digest = try Program.run("b2sum", ["-l", "256", pack]).output.prefix(64)
    let name = "\(digest).tar.zst\(TestEncryption.suffix)"
    #expect(URL(fileURLWithPath: pack).lastPathComponent == name)
    let content = try content(of: pack)
    let test = try Program.run("zstd", ["-t", "-q"], input: content)
    #expect(test.code == 0, "\(pack): \(test.errors)")
    let plain = try Program.run("zstd", ["-dcq"], input: content).standardOutput
    let gnu = try Program.run("tar", ["-tvf", "-"], input: plain)
    #expect(gnu.code == 0 && gnu.errors.isEmpty, "tar: \(gnu.errors)")
    let bsd = try Program.run(
      "bsdtar", ["-tvf", "-"], environment: ["LC_ALL": "C.UTF-8"], input: content)
    #expect(bsd.code == 0 && bsd.errors.isEmpty, "bsdtar: \(bsd.errors)")
    let members = gnu.output.split(separator: "\n").count
    #expect(members >= 2, "at least one member and the contents")
    #expect(gnu.output.contains(".sandboxctl/contents"))
  }

  /// Returns the names of the members of a pack.
  static func members(of pack: String) throws -> [Substring] {
    try Program.run("bsdtar", ["-tf", "-"], input: try content(of: pack)).output
      .split(separator: "\n")
  }

  private static func content(of pack: String) throws -> [UInt8] {
    try TestEncryption.content(of: Array(try Data(contentsOf: URL(fileURLWithPath: pack))))
  }
}
