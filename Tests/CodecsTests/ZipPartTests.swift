import Testing

@testable import Codecs

/// Large zip archives, which libarchive reads in parts.
struct ZipPartTests {
  /// The bytes of an archive in memory.
  private final class Input: ArchiveInput {
    private let bytes: [UInt8]
    private var position = 0
    private(set) var readCount = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var size: UInt64? { UInt64(bytes.count) }

    func read(into buffer: inout [UInt8]) -> Int {
      readCount += 1
      let part = bytes.dropFirst(position).prefix(buffer.count)
      buffer.replaceSubrange(0..<part.count, with: part)
      position += part.count
      return part.count
    }

    func seek(to offset: UInt64) { position = Int(clamping: offset) }
  }

  /// A member and its content.
  private struct Member: Equatable {
    let facts: ArchiveMember
    var content: [UInt8] = []
  }

  /// Returns an archive of files, of which every tenth is a directory and every tenth a link.
  private func archive(_ count: Int) throws -> [UInt8] {
    var writer = try ArchiveWriter(.zip)
    var bytes: [UInt8] = []
    for number in 0..<count {
      let content = [UInt8](repeating: UInt8(number % 251), count: number * 7 % 100)
      let kind: PaxMember.Kind =
        switch number % 10 {
        case 3: .directory
        case 4: .symbolicLink(target: Array("to \(number)".utf8))
        default: .file(size: UInt64(content.count))
        }
      let name = Array("cafe\u{301} \(number)".utf8)
      try writer.begin(PaxMember(path: name, kind: kind, mode: 0o640), to: &bytes)
      if case .file = kind {
        try content.withUnsafeBytes { try writer.write($0, to: &bytes) }
      }
    }
    try writer.finish(to: &bytes)
    return bytes
  }

  private func members(
    _ input: Input, _ format: ArchiveReader.Format = .zip, partSize: Int
  ) throws -> [Member] {
    var reader = try ArchiveReader(input, format: format, partSize: partSize)
    var (found, buffer) = ([Member](), [UInt8](repeating: 0, count: 64))
    while let facts = try reader.next() {
      var member = Member(facts: facts)
      while case let count = try buffer.withUnsafeMutableBytes({ try reader.read(into: $0) }),
        count > 0
      {
        member.content += buffer[..<count]
      }
      found.append(member)
    }
    #expect(reader.isEnded && reader.keepsNames)
    return found
  }

  /// The parts contain the members of the archive in the original order. An archive that fits into
  /// one part is not divided.
  @Test(arguments: [1, 7, 49, 50, 51], [ArchiveReader.Format.zip, .any])
  func partsHaveAllMembers(partSize: Int, format: ArchiveReader.Format) throws {
    let bytes = try archive(50)
    let whole = try members(Input(bytes), format, partSize: .max)
    #expect(whole.count == 50 && whole[49].content.count == 43)
    #expect(try members(Input(bytes), format, partSize: partSize) == whole)
    let outline = try #require(ZipOutline(in: Input(bytes), members: partSize))
    #expect(outline.parts.count == (partSize < 50 ? (49 / partSize) + 1 : 0))
  }

  /// libarchive searches the end record of an archive in the last 16 KiB of the file. If it does
  /// not find it there, it reads the archive as a stream: without modes, and with links as files.
  @Test(arguments: [(0, 0), (17_000, 0), (65_535, 0), (0, 20_000), (9_000, 9_000)])
  func anEndRecordFarFromTheEndOfTheFileIsFound(comment: Int, zeros: Int) throws {
    var bytes = try archive(50)
    let whole = try members(Input(bytes), partSize: .max)
    let end = bytes.count
    bytes[end - 2] = UInt8(truncatingIfNeeded: comment)
    bytes[end - 1] = UInt8(truncatingIfNeeded: comment >> 8)
    // A comment may contain bytes that look like an end record.
    var text = [UInt8](repeating: 7, count: comment)
    if comment > 0 { text.replaceSubrange(40..<44, with: ZipCentralDirectory.endSignature) }
    bytes += text + [UInt8](repeating: 0, count: zeros)
    for partSize in [7, Int.max] {
      #expect(try members(Input(bytes), partSize: partSize) == whole)
    }
  }

  /// If two headers refer to the same member, libarchive returns it only once, which must be
  /// reported.
  @Test func aHeaderWithoutAMemberIsReported() throws {
    let bytes = try archive(1)
    let directory = try #require(
      ZipCentralDirectory(in: Input(bytes), size: UInt64(bytes.count)))
    let range = Int(directory.range.lowerBound)..<Int(directory.range.upperBound)
    var end = Array(bytes[range.upperBound...])
    let size = 2 * range.count
    (end[8], end[10]) = (2, 2)
    (end[12], end[13]) = (UInt8(truncatingIfNeeded: size), UInt8(truncatingIfNeeded: size >> 8))
    let twice = bytes[..<range.upperBound] + bytes[range] + end
    var reader = try ArchiveReader(Input(Array(twice)), format: .zip, partSize: .max)
    #expect(try reader.next() != nil)
    let error = #expect(throws: CodecError.self) { try reader.next() }
    #expect(error?.reason.contains("2 entries, of which only 1 could be read") == true)
    let isEnded = reader.isEnded
    #expect(isEnded)
  }

  /// A backslash is part of a name, unless the member comes from a system on which it is a
  /// separator.
  @Test(arguments: [1, 10]) func backslashesStay(partSize: Int) throws {
    var writer = try ArchiveWriter(.zip)
    var bytes: [UInt8] = []
    let names = ["a\\b", "caf\u{e9}\\x", "d/e\\f", "plain"]
    for name in names {
      try writer.begin(
        PaxMember(path: Array(name.utf8), kind: .file(size: 0), mode: 0o644), to: &bytes)
    }
    try writer.finish(to: &bytes)
    func paths() throws -> [String] {
      try members(Input(bytes), partSize: partSize).map {
        String(decoding: $0.facts.path ?? [], as: UTF8.self)
      }
    }
    #expect(try paths() == names)
    var directory = try #require(
      ZipCentralDirectory(in: Input(bytes), size: UInt64(bytes.count)))
    while let header = directory.next() { bytes[Int(header.start) + 5] = 0 }
    #expect(try paths() == ["a/b", "caf\u{e9}/x", "d/e\\f", "plain"])
  }

  /// libarchive would truncate the names at the NUL, so that the first one would equal another
  /// member's name.
  @Test(arguments: [1, 10]) func namesKeepNULs(partSize: Int) throws {
    var writer = try ArchiveWriter(.zip)
    var bytes: [UInt8] = []
    let names = ["aXX", "caf\u{e9}X/x", "a", "dX", "plain"]
    for name in names {
      let kind: PaxMember.Kind = name == "dX" ? .directory : .file(size: 0)
      try writer.begin(PaxMember(path: Array(name.utf8), kind: kind, mode: 0o644), to: &bytes)
    }
    try writer.finish(to: &bytes)
    for name in names where name.contains("X") {
      let found = Array(name.utf8)
      for range in bytes.ranges(of: found) {
        bytes.replaceSubrange(range, with: found.map { $0 == UInt8(ascii: "X") ? 0 : $0 })
      }
    }
    let paths = try members(Input(bytes), partSize: partSize).map {
      String(decoding: $0.facts.path ?? [], as: UTF8.self)
    }
    #expect(paths.prefix(3) == ["a\0\0", "caf\u{e9}\0/x", "a"])
    #expect(paths.count == 5 && paths[3].hasPrefix("d\0") && paths[4] == "plain")
  }

  /// Info-ZIP writes the name "a\u{7f}b" again in an extra field (0x7075), as `61 C1 BF 62`, which
  /// is no UTF-8.
  @Test(arguments: [1, 10]) func aNameInAnInvalidFieldStays(partSize: Int) throws {
    func number(_ value: Int, _ size: Int) -> [UInt8] {
      (0..<size).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    let names: [[UInt8]] = [[0x61, 0x7f, 0x62], Array("x".utf8), Array("plain".utf8)]
    // The version, the CRC-32 of the name, and the name in the field.
    let fields: [[UInt8]] = [
      [0x75, 0x70, 9, 0, 1, 0x48, 0x1d, 0x4f, 0xbd, 0x61, 0xc1, 0xbf, 0x62],
      [0x75, 0x70, 7, 0, 1, 0x83, 0x16, 0xdc, 0x8c, 0xc3, 0xa9], [],
    ]
    var (bytes, headers): ([UInt8], [UInt8]) = ([], [])
    for (name, field) in zip(names, fields) {
      // Version, flags, method, time, date, CRC-32 and both sizes of an empty file.
      let facts =
        number(10, 2) + [UInt8](repeating: 0, count: 6) + number(33, 2)
        + [UInt8](repeating: 0, count: 12)
      let lengths = number(name.count, 2) + number(field.count, 2)
      headers += [0x50, 0x4b, 1, 2] + number(3 << 8 | 30, 2) + facts + lengths
      headers += number(0, 6) + number(0o100644 << 16, 4) + number(bytes.count, 4) + name + field
      bytes += [0x50, 0x4b, 3, 4] + facts + lengths + name + field
    }
    let end =
      number(0, 4) + number(3, 2) + number(3, 2) + number(headers.count, 4)
      + number(bytes.count, 4) + number(0, 2)
    bytes += headers + [0x50, 0x4b, 5, 6] + end
    let found = try members(Input(bytes), partSize: partSize)
    #expect(found.map(\.facts.path) == [names[0], Array("\u{e9}".utf8), names[2]])
    #expect(found.allSatisfy { !$0.facts.isRenamed })
  }

  /// If the headers have another order than the members, the archive is not divided, because parts
  /// would change the order.
  @Test func archivesInAnotherOrderAreNotDivided() throws {
    var bytes = try archive(20)
    let whole = try members(Input(bytes), partSize: .max)
    var directory = try #require(
      ZipCentralDirectory(in: Input(bytes), size: UInt64(bytes.count)))
    var starts: [Int] = []
    while let header = directory.next() { starts.append(Int(header.start)) }
    let ends = starts.dropFirst() + [Int(directory.range.upperBound)]
    let reversed = zip(starts, ends).reversed().flatMap { bytes[$0..<$1] }
    bytes.replaceSubrange(starts[0]..<Int(directory.range.upperBound), with: reversed)
    #expect(try #require(ZipOutline(in: Input(bytes), members: 3)).parts.isEmpty)
    #expect(try members(Input(bytes), partSize: 3) == whole)
  }

  /// libarchive takes a name from the local header, and does not compare it with the directory's.
  @Test(arguments: [2, Int.max], [true, false])
  func aNameOtherThanThatOfTheDirectoryIsKnown(partSize: Int, isLocal: Bool) throws {
    var bytes = try archive(5)
    #expect(try members(Input(bytes), partSize: partSize).allSatisfy { !$0.facts.isRenamed })
    let name = Array("cafe\u{301} 1".utf8)
    let places = bytes.indices.filter { bytes[$0...].starts(with: name) }
    #expect(places.count == 2)
    let place = try #require(isLocal ? places.first : places.last)
    bytes[place + name.count - 1] = UInt8(ascii: "9")
    let found = try members(Input(bytes), partSize: partSize)
    #expect(found.map(\.facts.isRenamed) == [false, true, false, false, false])
    let path = Array("cafe\u{301} \(isLocal ? 9 : 1)".utf8)
    #expect(found[1].facts.path == path)
  }

  /// libarchive seeks to each member, and each member contains the flags of its name. Bytes that
  /// were just read are not read again for that.
  @Test func smallMembersAreReadTogether() throws {
    let input = Input(try archive(3000))
    #expect(try members(input, partSize: 1000).count == 3000)
    #expect(input.readCount < 300, "\(input.readCount)")
  }

  /// If an archive in parts is damaged, it is refused, or its intact members are read.
  @Test func damagedPartsAreRead() throws {
    let bytes = try archive(30)
    for place in stride(from: 4, to: bytes.count, by: 29) {
      var changed = bytes
      changed[place] ^= 0xFF
      for damaged in [changed, Array(bytes[..<place])] {
        guard let found = try? read(damaged) else { continue }
        #expect(found <= 30)
      }
    }
  }

  /// Returns the number of members up to the end or the first error.
  private func read(_ bytes: [UInt8]) throws -> Int {
    var reader = try ArchiveReader(Input(bytes), format: .zip, partSize: 4)
    var count = 0
    while (try? reader.next()) != nil { count += 1 }
    return count
  }
}
