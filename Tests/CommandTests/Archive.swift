import Foundation
import TestSupport
import Testing

/// Checks of a pack by standard programs.
enum Archive {
  /// Checks that a pack passes `zstd -t`, is named by its BLAKE2b-256, and is listed by GNU tar and
  /// bsdtar without a message on standard error.
  static func check(_ pack: String) throws {
    let test = try Program.run("zstd", ["-t", "-q", pack])
    #expect(test.code == 0, "\(pack): \(test.errors)")
    let digest = try Program.run("b2sum", ["-l", "256", pack]).output.prefix(64)
    #expect(URL(fileURLWithPath: pack).lastPathComponent == "\(digest).tar.zst")
    let plain = try Program.run("zstd", ["-dcq", pack]).standardOutput
    let gnu = try Program.run("tar", ["-tvf", "-"], input: plain)
    #expect(gnu.code == 0 && gnu.errors.isEmpty, "tar: \(gnu.errors)")
    let bsd = try Program.run("bsdtar", ["-tvf", pack], environment: ["LC_ALL": "C.UTF-8"])
    #expect(bsd.code == 0 && bsd.errors.isEmpty, "bsdtar: \(bsd.errors)")
    let members = gnu.output.split(separator: "\n").count
    #expect(members >= 2, "at least one member and the contents")
    #expect(gnu.output.contains(".sandboxctl/contents"))
  }
}
