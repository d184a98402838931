import Codecs
import Foundation
import TestSupport
import Testing

struct TarTests {
  /// Names of every kind that a file system can contain.
  static let names: [[UInt8]] = {
    func text(_ text: String) -> [UInt8] { Array(text.utf8) }
    func run(_ letter: String, _ count: Int) -> String { String(repeating: letter, count: count) }
    let deep = (0..<40).map { "\($0)" + run("d", 98) }.joined(separator: "/")
    var names: [[UInt8]] = [
      text("a/b"), text("é"), text("e\u{301}"), text("new\nline"), text("tab\tback\\slash"),
      text("\u{1B}[31m"), [0xFF, 0xFE], text("x/") + [0xC3], [0x80], text(" "), text("-rf"),
      text(run("n", 99)), text(run("o", 100)), text(run("p", 101)), text(run("q", 255)),
      text(run("é", 50)), text(run("é", 51)), text(run("r", 120)) + [0xFE, 0x0A],
      text(run("a", 154) + "/" + run("b", 100)), text(run("a", 155) + "/" + run("b", 100)),
      text(run("a", 156) + "/" + run("b", 100)), text(run("a", 155) + "/" + run("b", 101)),
      text(run("a", 10) + "/" + run("b", 90)), text(run("c", 10) + "/" + run("b", 91)),
      text(deep + run("z", 4096 - deep.utf8.count)),
    ]
    for byte in UInt8(1)...255 where byte != UInt8(ascii: "/") { names.append([0x62, 0x62, byte]) }
    return names
  }()

  static func archive(_ names: [[UInt8]]) throws -> [UInt8] {
    var writer = try TarWriter()
    var buffer: [UInt8] = []
    for (index, name) in names.enumerated() {
      let content = Array("content \(index)".utf8)
      let member = TarMember(path: name, size: content.count, modified: 1_700_000_000)
      let start = buffer.count
      let position = try writer.append(member, content: content, to: &buffer)
      #expect(position == start + member.headerSize)
      #expect(buffer.count == start + member.encodedSize)
      #expect(Array(buffer[position..<(position + content.count)]) == content)
    }
    TarWriter.appendEnd(to: &buffer)
    return buffer
  }

  @Test func storesAnyNameByBytes() throws {
    let archive = try Self.archive(Self.names)
    let members = try TarReader.members(of: archive)
    #expect(members.map(\.member.path) == Self.names)
    #expect(members.map(\.content) == Self.names.indices.map { Array("content \($0)".utf8) })
    #expect(try TarReader.headers(in: archive.span) == members.map(\.member))
  }

  @Test func truncatedContentIsRefused() throws {
    let archive = Array(try Self.archive([[0x61]]).prefix(515))
    #expect(throws: CodecError.self) { try TarReader.headers(in: archive.span) }
    #expect(throws: CodecError.self) { try TarReader.members(of: archive) }
  }

  @Test(arguments: ["tar", "bsdtar"], ["C", "C.UTF-8"])
  func isListedWithoutMessages(program: String, locale: String) throws {
    let archive = try Self.archive(Self.names)
    let list = try run(["env", "LC_ALL=" + locale, program, "-tf", "-"], input: archive)
    #expect(list.status == 0)
    #expect(list.errors == "")
    #expect(list.output.split(separator: 0x0A).count == Self.names.count)
    let verbose = try run(["env", "LC_ALL=" + locale, program, "-tvf", "-"], input: archive)
    #expect(verbose.status == 0)
    #expect(verbose.errors == "")
  }

  @Test(arguments: ["tar", "bsdtar"], ["C", "C.UTF-8"])
  func isExtractedByBytes(program: String, locale: String) throws {
    let names = Self.names.filter { name in
      name.split(separator: 0x2F).allSatisfy { $0.count <= 255 } && name.count < 4000
    }
    let directory = try TemporaryDirectory()
    let result = try run(
      ["env", "LC_ALL=" + locale, program, "-xf", "-"], input: try Self.archive(names),
      directory: directory.path)
    #expect(result.status == 0)
    #expect(result.errors == "")
    let find = try run(["find", ".", "-type", "f", "-print0"], directory: directory.path)
    let found = Set(find.output.split(separator: 0).map { Array($0.dropFirst(2)) })
    #expect(found == Set(names))
  }

  @Test func isReadByPython() throws {
    let script = """
      import sys, tarfile
      for m in tarfile.open(fileobj=sys.stdin.buffer, mode="r|", encoding="utf-8",
          errors="surrogateescape"):
        sys.stdout.buffer.write(m.name.encode("utf-8", "surrogateescape") + b"\\0")
      """
    let list = try run(["python3", "-c", script], input: try Self.archive(Self.names))
    #expect(list.status == 0)
    #expect(list.output.split(separator: 0).map { Array($0) } == Self.names)
  }

  @Test func writesPOSIXHeadersWherePossible() throws {
    var writer = try TarWriter()
    var buffer: [UInt8] = []
    try writer.append(
      TarMember(path: Array("dir/file".utf8), size: 3, mode: 0o4751, modified: 1_700_000_000),
      content: [1, 2, 3], to: &buffer)
    #expect(buffer.count == 1024)
    func field(_ start: Int, _ count: Int) -> String {
      String(decoding: buffer[start..<(start + count)], as: UTF8.self)
    }
    #expect(field(0, 9) == "dir/file\0")
    #expect(field(100, 8) == "004751 \0")
    #expect(field(108, 8) == "000000 \0")
    #expect(field(124, 12) == "00000000003 ")
    #expect(field(136, 12) == "14524770400 ")
    #expect(field(156, 1) == "0")
    #expect(field(257, 8) == "ustar\u{0}00")
    #expect(buffer[515...].allSatisfy { $0 == 0 })
    #expect(
      Blake2b.hash(buffer).hex
        == "8037369872771bc95278ace51d4e301a2dfcf9e7f662aa9f2313ca27af8773f0")
  }

  @Test func keepsDirectoriesLinksModesAndTimes() throws {
    func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
    let long = bytes(String(repeating: "l", count: 300))
    let members = [
      TarMember(path: bytes("d"), kind: .directory, mode: 0o1777, modified: 0),
      TarMember(path: long, kind: .directory, mode: 0o700, modified: 1),
      TarMember(path: bytes("s"), kind: .symbolicLink(target: [0xFF]), mode: 0o777, modified: 2),
      TarMember(path: bytes("t"), kind: .symbolicLink(target: long), mode: 0o777, modified: 3),
      TarMember(path: long + [0x6D], kind: .symbolicLink(target: long), mode: 0o777, modified: 3),
      TarMember(path: bytes("f"), size: 0, mode: 0o7777, modified: 0o777_7777_7777),
      TarMember(path: bytes("h"), kind: .hardLink(target: bytes("f")), mode: 0o644, modified: 4),
    ]
    var writer = try TarWriter()
    var buffer: [UInt8] = []
    for member in members {
      let start = buffer.count
      try writer.append(member, to: &buffer)
      #expect(buffer.count - start == member.encodedSize)
    }
    TarWriter.appendEnd(to: &buffer)
    #expect(try TarReader.members(of: buffer).map(\.member) == members)
    for program in ["tar", "bsdtar"] {
      let list = try run([program, "-tvf", "-"], input: buffer)
      #expect(list.status == 0)
      #expect(list.errors == "")
    }
  }

  @Test(arguments: [(Int64.min, Int64(0)), (-1, 0), (.max, 0o777_7777_7777)])
  func writesTheNearestPossibleTime(given: Int64, written: Int64) throws {
    var writer = try TarWriter()
    var buffer: [UInt8] = []
    for path in [[0x61], [UInt8](repeating: 0x61, count: 200)] {
      try writer.append(TarMember(path: path, size: 0, modified: given), to: &buffer)
    }
    #expect(try TarReader.members(of: buffer).map(\.member.modified) == [written, written])
  }

  @Test(arguments: [0, 1, 511, 512, 513, 100_000])
  func storesContentInPieces(size: Int) throws {
    var random = Seeded(5)
    let content = random.bytes(size)
    var writer = try TarWriter()
    for path in [Array("short".utf8), [UInt8](repeating: 0x61, count: 300)] {
      let member = TarMember(path: path, size: size)
      var whole: [UInt8] = [7]
      let position = try writer.append(member, content: content, to: &whole)
      var pieces: [UInt8] = [7]
      #expect(try writer.begin(member, in: &pieces) == position)
      var rest = content[...]
      while !rest.isEmpty {
        let count = Int.random(in: 1...70_000, using: &random)
        try writer.write(Array(rest.prefix(count)).span, to: &pieces)
        rest = rest.dropFirst(count)
      }
      try writer.finish(in: &pieces)
      #expect(pieces == whole)
      #expect(whole.count == 1 + member.encodedSize)
    }
  }

  @Test func refusesValuesThatDoNotFitAHeader() throws {
    func kind(_ member: TarMember, _ content: [UInt8] = []) throws -> CodecError.Kind? {
      var writer = try TarWriter()
      var buffer: [UInt8] = []
      return failure { () throws(CodecError) in
        try writer.append(member, content: content, to: &buffer)
      }?.kind
    }
    #expect(try kind(TarMember(path: [], size: 0)) == .unrepresentable)
    #expect(try kind(TarMember(path: [0x61, 0, 0x62], size: 0)) == .unrepresentable)
    #expect(try kind(TarMember(path: [0x61, 0x2F], size: 0)) == .unrepresentable)
    #expect(try kind(TarMember(path: [0x61], size: -1)) == .unrepresentable)
    #expect(try kind(TarMember(path: [0x61], size: 1 << 33)) == .unrepresentable)
    #expect(try kind(TarMember(path: [0x61], size: 2), [1]) == .unrepresentable)
    #expect(try kind(TarMember(path: [0x61], size: 2), [1, 2, 3]) == .unrepresentable)
    let link = TarMember(path: [0x61], kind: .symbolicLink(target: []), mode: 0, modified: 0)
    #expect(try kind(link) == .unrepresentable)
    let other = TarMember(path: [0x61], kind: .other, mode: 0, modified: 0)
    #expect(try kind(other) == .unrepresentable)
  }

  /// Frames of complete members form an archive in any order, if the end blocks follow.
  @Test(arguments: ["tar", "bsdtar"])
  func independentFramesFormAnArchive(program: String) throws {
    var writer = try TarWriter()
    var compressor = try ZstdCompressor()
    var table = SeekTable()
    let frames = try Self.names.map { name in
      var members: [UInt8] = []
      try writer.append(TarMember(path: name, size: 1), content: [7], to: &members)
      return members
    }
    var file: [UInt8] = []
    for plain in frames.reversed() + [[UInt8](repeating: 0, count: TarMember.endSize)] {
      let size = try compressor.compress(plain.span, appendingTo: &file)
      table.frames.append(.init(storedSize: UInt32(size), contentSize: UInt32(plain.count)))
    }
    table.encode(to: &file)
    let list = try run(["sh", "-c", "zstd -dc | \(program) -tf -"], input: file)
    #expect(list.status == 0)
    #expect(list.errors == "")
    #expect(list.output.split(separator: 0x0A).count == Self.names.count)
    let plain = try run(["zstd", "-dc"], input: file).output
    #expect(try TarReader.members(of: plain).map(\.member.path) == Self.names.reversed())
  }

  @Test func readsForeignArchives() throws {
    let directory = try TemporaryDirectory()
    let name = "é" + String(repeating: "n", count: 120)
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: directory.path + "/" + name))
    for format in ["pax", "gnu"] {
      let archive = try run(
        ["tar", "--format=" + format, "-cf", "-", name], directory: directory.path)
      let members = try TarReader.members(of: archive.output)
      #expect(members.map(\.member.path) == [Array(name.utf8)])
      #expect(members.map(\.content) == [[1, 2, 3]])
    }
  }

  @Test func limitsWhatItReads() throws {
    let archive = try Self.archive([[0x61], [0x62], [0x63]])
    func kind(_ archive: [UInt8], _ limits: TarReader.Limits) -> CodecError.Kind? {
      do throws(CodecError) {
        _ = try TarReader.members(of: archive, limits: limits)
        return nil
      } catch {
        return error.kind
      }
    }
    #expect(kind(archive, .init(members: 2)) == .limit)
    #expect(kind(archive, .init(contentSize: 8)) == .limit)
    #expect(kind(archive, .init(totalSize: 26)) == .limit)
    #expect(kind(archive, .init(totalSize: 27)) == nil)
    #expect(kind(Array(archive.prefix(515)), .init()) != nil)
    #expect(kind(Array("hello".utf8), .init()) == .malformed)
    #expect(kind([], .init()) == .malformed)
    #expect(try TarReader.members(of: [UInt8](repeating: 0, count: 1024)).isEmpty)
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func neverTrapsOnDamage(seed: UInt64) throws {
    var random = Seeded(seed)
    let archive = try Self.archive(Array(Self.names.prefix(30)))
    var refused = 0
    for _ in 0..<300 {
      do throws(CodecError) {
        for (member, content) in try TarReader.members(of: random.damage(archive)) {
          #expect(content.count == member.contentSize, "seed \(seed)")
        }
      } catch {
        refused += 1
        #expect(error.format == .tar, "seed \(seed)")
      }
    }
    #expect(refused > 0, "seed \(seed)")
  }
}
