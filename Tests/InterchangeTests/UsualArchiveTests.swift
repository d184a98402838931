import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Interchange

/// The direct reader of archived files is compared with the general one.
struct UsualArchiveTests {
  /// Returns a file with random members.
  private static func file(_ random: inout Seeded) -> MobileFile {
    var file = MobileFile()
    let numbers: [UInt64] = [0, 1, 255, 256, 65_535, 65_536, 1 << 31, 1 << 32, 1 << 62]
    func number(_ random: inout Seeded) -> UInt64 {
      numbers[Int(random.next() % UInt64(numbers.count))]
    }
    if random.next() % 8 > 0 { file.mode = [0o100644, 0o040755, 0o120755][Int(random.next() % 3)] }
    (file.size, file.inode) = (number(&random), number(&random))
    (file.owner, file.group) = (501, UInt32.max - 1)
    file.modified = Int64(number(&random)) - 5
    (file.changed, file.born) = (Int64(number(&random)), 1_700_000_000)
    file.protectionClass = UInt8(random.next() % 5)
    if random.next() % 4 == 0 { file.target = "../caf\u{e9}" }
    if random.next() % 4 == 0 { file.target = "../target" }
    if random.next() % 3 == 0 { file.digest = random.bytes(20) }
    if random.next() % 3 == 0 {
      file.key = WrappedKey(classNumber: 3, wrapped: random.bytes(40))
    }
    if random.next() % 3 == 0 {
      file.attributes = [
        .init(name: "com.apple.note", value: random.bytes(Int(random.next() % 600)))
      ]
    }
    return file
  }

  private static let paths: [ByteString] = [
    "", "Library/Preferences/a.plist", "caf\u{e9}/\u{4e2d}\u{6587}", "a/\u{1f600}",
  ]

  /// Files of the usual form are read directly, with the same result as by the general reader.
  @Test func bothReadersReadTheSameMembers() throws {
    var random = Seeded(21)
    var direct = 0
    for round in 0..<300 {
      let file = Self.file(&random)
      let bytes = try file.archive(relativePath: Self.paths[round % Self.paths.count])
      let members = try KeyedArchive(bytes).members()
      if let usual = UsualArchive.members(of: bytes) {
        #expect(usual == members)
        direct += 1
      }
      #expect(try MobileFile(archive: bytes) == file)
    }
    // All others have a text with a character of two UTF-16 units, or a link target outside ASCII.
    #expect(direct > 150)
  }

  /// Whatever the direct reader accepts of a damaged archive, the general one reads in the same
  /// way.
  @Test func bothReadersAgreeOnDamagedArchives() throws {
    var random = Seeded(22)
    var accepted = 0
    for round in 0..<40 {
      let file = Self.file(&random)
      let bytes = try file.archive(relativePath: Self.paths[round % 3])
      for _ in 0..<100 {
        var changed = bytes
        for _ in 0...(random.next() % 3) {
          changed[Int(random.next() % UInt64(changed.count))] = UInt8(random.next() & 255)
        }
        guard let usual = UsualArchive.members(of: changed) else { continue }
        accepted += 1
        #expect(try KeyedArchive(changed).members() == usual)
      }
      for end in bytes.indices { _ = UsualArchive.members(of: Array(bytes[..<end])) }
    }
    #expect(accepted > 100)
  }

  /// Valid archives of another form are left to the general reader.
  @Test func otherFormsAreForTheGeneralReader() throws {
    func archive(
      _ members: [PropertyList.Member], _ objects: [PropertyList] = []
    ) throws -> [UInt8] {
      try PropertyList.dictionary([
        .init("$objects", .array([.string("$null"), .dictionary(members)] + objects)),
        .init("$top", .dictionary([.init("root", .uid(1))])),
      ]).binary()
    }
    let mode = PropertyList.Member("Mode", .integer(0o100644))
    #expect(UsualArchive.members(of: try archive([mode]))?.mode == 0o100644)
    for (members, objects) in [
      ([mode, .init("Size", .real(5))], []),
      ([.init("Mode", .uid(2))], [.integer(1)]),
      ([mode, .init("Size", .unsigned(.max))], []),
      ([mode, .init("Target", .uid(0))], []),
      ([mode, .init("Target", .uid(9))], []),
      ([mode, .init("Target", .uid(2))], [PropertyList.dictionary([])]),
      ([mode, .init("Digest", .uid(2))], [.dictionary([.init("NS.data", .string("x"))])]),
    ] {
      #expect(UsualArchive.members(of: try archive(members, objects)) == nil)
    }
    let data = PropertyList.dictionary([.init("NS.data", .uid(3))])
    let bytes = try archive([mode, .init("Digest", .uid(2))], [data, .data([1, 2])])
    #expect(UsualArchive.members(of: bytes)?.digest == [1, 2])
  }
}
