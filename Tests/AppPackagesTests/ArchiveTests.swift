import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppPackages

/// Damaged and ambiguous archives are refused.
struct ArchiveTests {
  typealias Entry = ZipBuilder.Entry

  private func reason(_ change: (inout Entry) -> Void) throws -> String? {
    var entry = Entry("Payload/X.app/f", Array("content".utf8))
    change(&entry)
    return try refusal(of: ZipBuilder.app([entry]).bytes())?.reason
  }

  @Test func encryptedEntriesAreRefused() throws {
    for flags: UInt16 in [1, 1 << 6 | 1, 1 << 13] {
      #expect(try reason { $0.flags = flags }?.contains("encrypted with a password") == true)
    }
    #expect(try reason { $0.method = 99 }?.contains("encrypted with a password") == true)
    #expect(try reason { $0.method = 12 }?.contains("method 12") == true)
  }

  /// The central directory and the local headers must agree.
  @Test func contradictoryHeadersAreRefused() throws {
    #expect(
      try reason { $0.localName = Array("Payload/X.app/g".utf8) }?.contains("two names") == true)
    #expect(try reason { $0.localSize = 3 }?.contains("does not match its directory") == true)
    #expect(try reason { $0.localMethod = 8 }?.contains("does not match its directory") == true)
    #expect(try reason { $0.checksum = 7 }?.contains("damaged") == true)
    #expect(try reason { $0.size = 9 }?.contains("cannot be compressed") == true)
    #expect(try reason { $0.offset = 0 }?.contains("another entry") == true)
  }

  /// An archive that is truncated anywhere is refused, and no changed byte crashes the reader.
  @Test func truncatedArchivesAreRefused() throws {
    let bytes = ZipBuilder.app([Entry("Payload/X.app/f", Array("content".utf8))]).bytes()
    #expect(try refusal(of: bytes) == nil)
    for length in stride(from: 0, to: bytes.count, by: 3) {
      #expect(try refusal(of: Array(bytes.prefix(length))) != nil, "\(length)")
    }
    var refused = 0
    for position in bytes.indices {
      var changed = bytes
      changed[position] ^= 0x41
      if try refusal(of: changed) != nil { refused += 1 }
    }
    // Times, modes and unused fields of the end record may have any value.
    #expect(refused > bytes.count / 2)
    #expect(try refusal(of: [1, 2, 3] + bytes)?.reason.contains("data before it") == true)
    #expect(try refusal(of: bytes + [0])?.reason.contains("not a zip archive") == true)
  }

  @Test func commentIsNotTheEndRecord() throws {
    var builder = ZipBuilder.app()
    builder.comment = Array("PK\u{5}\u{6} and more than twenty-two bytes".utf8)
    // libarchive mistakes the signature in the comment for the end record, so the archive is
    // ambiguous and refused.
    let refused = try refusal(of: builder.bytes())
    #expect(refused?.code == .package && refused?.reason.contains("another end record") == true)
    builder.comment = Array("a comment of more than twenty-two bytes".utf8)
    #expect(try refusal(of: builder.bytes()) == nil)
    builder.comment = Array("PK\u{5}\u{6}".utf8)
    #expect(try refusal(of: builder.bytes())?.code == .package)
  }

  /// A comment may have 65,535 bytes, but libarchive looks for the end record only in the last 16
  /// KiB.
  @Test(arguments: [16_000, 17_000, 65_535]) func longCommentsAreNotDamage(length: Int) throws {
    var builder = ZipBuilder.app([Entry("Payload/X.app/f", Array("content".utf8))])
    builder.comment = [UInt8](repeating: UInt8(ascii: "c"), count: length)
    #expect(try refusal(of: builder.bytes()) == nil)
  }

  @Test func oversizedArchivesAreRefused() throws {
    let bytes = ZipBuilder.app([
      Entry("Payload/X.app/f", [UInt8](repeating: 7, count: 5000))
    ]).bytes()
    #expect(
      try refusal(of: bytes, limits: PackageLimits(entries: 3))?.reason.contains("entries") == true)
    #expect(
      try refusal(of: bytes, limits: PackageLimits(availableBytes: 4999))?.reason
        .contains("4999 bytes free") == true)
    #expect(try refusal(of: bytes, limits: PackageLimits(availableBytes: 6000)) == nil)
    #expect(try refusal(of: bytes, limits: PackageLimits(pathBytes: 40))?.code == .unsafePackage)
    // Implied directories count as well.
    let implied = ZipBuilder.app([
      Entry("Payload/X.app/" + String(repeating: "d/", count: 30) + "f", [1])
    ]).bytes()
    #expect(try refusal(of: implied, limits: PackageLimits(entries: 12))?.code == .unsafePackage)
  }

  /// Deflated zeros: a thousand times as large as the archive, refused above a minimum size.
  @Test func highCompressionRatiosAreRefused() throws {
    let directory = try TemporaryDirectory("bomb")
    let script = """
      import sys, zipfile
      with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as z:
          z.writestr("Payload/X.app/Info.plist", sys.stdin.read())
          z.writestr("Payload/X.app/zeros", bytes(4 << 20))
      """
    let made = try Program.run(
      "python3", ["-c", script, directory.string + "/b.ipa"],
      input: ZipBuilder.info("com.example.x"))
    #expect(made.code == 0, "\(made.errors)")
    let bytes = try directory.read("b.ipa")
    #expect(try refusal(of: bytes) == nil)
    let strict = PackageLimits(ratioFloor: 1 << 20)
    #expect(try refusal(of: bytes, limits: strict)?.reason.contains("100 to 1") == true)
    // The same with a wrong size: four bytes of the directory and of the local header.
    var lying = bytes
    let size = ZipBuilder.number(4 << 20, 4)
    for position in lying.indices.dropLast(3) where Array(lying[position..<(position + 4)]) == size
    {
      lying.replaceSubrange(position..<(position + 4), with: ZipBuilder.number(1000, 4))
    }
    #expect(lying != bytes)
    #expect(try refusal(of: lying)?.code != nil)
  }
}
