import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Standard programs must be able to open packs.
struct PackProgramTests {
  private let directory = TemporaryDirectory()
  private let repository: Repository

  init() throws {
    let storage = try LocalStorage.create(path: ByteString(directory("repo")))
    repository = try Repository.create(in: storage, program: "test")
  }

  /// A path of a hundred components, which does not fit into a plain header.
  private static let deep = Array(repeating: "a-folder-with-a-long-name", count: 100)
    .joined(separator: "/")

  private static let names: [ByteString] = [
    "plain", "with space", "\u{e9}\u{304}", "-rf", "new\nline", "tab\t", "back\\slash", "*?[",
    ByteString([0xff, 0xfe, 0x80]), ByteString([UInt8](repeating: 0x61, count: 255)),
    ByteString("\(deep)/file"), ByteString([UInt8](repeating: 0xc3, count: 200)),
    ByteString("dir/" + String(repeating: "n", count: 99)), ".hidden", " ", "~", "a:b", "%s%n",
  ]

  /// Makes packs with all kinds of members: small files, parts, the blob of an attribute, lists,
  /// trees.
  private func fill() throws -> [(path: ByteString, bytes: [UInt8])] {
    var random = SeededBytes(seed: 21)
    let session = try repository.beginWriting()
    var files: [(path: ByteString, bytes: [UInt8])] = []
    for name in Self.names {
      let path = ByteString("folders/x").appending(name)
      files.append((path, random.bytes(100)))
    }
    files.append(("folders/x/eight", random.bytes(8 << 20)))
    files.append(("folders/x/large", random.bytes(19 << 20)))
    files.append(("folders/x/base", DatabaseHead.bytes + random.bytes(5 << 20)))
    files.append(("folders/x/text", Array(String(repeating: "words ", count: 1 << 20).utf8)))
    try session.withWriter { writer in
      for file in files { _ = try writer.storeFile(logicalPath: file.path, bytes: file.bytes) }
    }
    let attribute = try session.makeAttribute(name: "user.a", value: random.bytes(2000))
    let tree = try session.storeTree([
      TreeEntry(name: "x", node: .fifo, attributes: [attribute])
    ])
    _ = try session.finish(repository.makeSnapshot(tree))
    return files
  }

  private func packs() -> [String] { directory.files().filter { $0.hasSuffix(".tar.zst") } }

  private func expectQuiet(_ command: String) throws -> ProgramResult {
    let result = try run(command, in: directory.path)
    #expect(result.status == 0, "\(command): \(result.errors)")
    #expect(result.errors.isEmpty, "\(command): \(result.errors)")
    return result
  }

  @Test(arguments: ["C", "C.UTF-8"])
  func standardProgramsAcceptEveryPack(locale: String) throws {
    _ = try fill()
    let inLocale = "export LC_ALL=\(locale);"
    #expect(packs().count >= 2)
    for pack in packs() {
      _ = try expectQuiet("zstd -q -t \(pack)")
      let sum = try expectQuiet("b2sum -l 256 \(pack)")
      let id = pack.split(separator: "/").last?.prefix(64)
      #expect(sum.lines.first?.hasPrefix(id ?? "none") == true)
      let gnu = try expectQuiet("\(inLocale) zstd -q -dc \(pack) | tar -t")
      let bsd = try expectQuiet("\(inLocale) zstd -q -dc \(pack) | bsdtar -t -f -")
      let direct = try expectQuiet("\(inLocale) bsdtar -t -f \(pack)")
      #expect(gnu.lines.last == ".sandboxctl/contents")
      #expect(bsd.lines.count == direct.lines.count)
      #expect(bsd.lines.count == gnu.lines.count)
    }
  }

  @Test func filesAreExtractedAtTheirPaths() throws {
    let files = try fill()
    for program in ["tar -x -C", "bsdtar -x -f - -C"] {
      let target = directory("out-\(program.prefix(3))")
      try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
      for pack in packs() { _ = try expectQuiet("zstd -q -dc \(pack) | \(program) \(target)") }
      for file in files {
        let bytes = try extracted(file.path, in: target, isWhole: file.bytes.count <= 8 << 20)
        #expect(bytes == file.bytes, "\(program) \(file.path)")
      }
    }
  }

  private func extracted(
    _ path: ByteString, in target: String, isWhole: Bool
  ) throws -> [UInt8] {
    if isWhole {
      let full = ByteString(target).appending(path)
      return try Descriptor.open(path: full).readAll(limit: 64 << 20) ?? []
    }
    return try run("cat '\(target)/.sandboxctl/parts/\(path)'/*", in: directory.path).output
  }

  @Test func packIDsAreUnique() throws {
    var ids: Set<String> = []
    for number in 0..<3 {
      let other = try Repository.create(
        in: LocalStorage.create(path: ByteString(directory("other-\(number)"))), program: "test")
      try other.back(up: [("a", [1, 2, 3])])
    }
    for pack in packs() { ids.insert(String(pack.split(separator: "/").last ?? "")) }
    #expect(ids.count == packs().count)
    #expect(packs().count == 6)
  }

  /// The pack's own tables agree with the index.
  @Test func contentsAndSeekTableAgreeWithTheIndex() throws {
    _ = try fill()
    for object in try LoadedIndex.loadAll(from: repository.storage).objects {
      var blobs = 0
      for number in 0..<object.packs {
        let pack = object.pack(number)
        let frames = (0..<pack.frames).map { object.frame(pack.firstFrame + $0) }
        let bytes = try repository.storage.load(
          RepositoryLayout.tested.pack(pack.id), limit: Int(pack.size))
        #expect(UInt64(bytes.count) == pack.size)
        let table = try SeekTable(tail: bytes.span)
        #expect(table.frames.map(\.storedSize) == frames.map(\.stored))
        #expect(table.frames.map(\.contentSize) == frames.map(\.plain))
        let last = try #require(table.frameRanges.last)
        var decompressor = try ZstdDecompressor()
        let plain = try decompressor.decompress(
          Array(bytes[last.stored]), limit: FormatLimit.frame)
        let member = try #require(try TarReader.members(of: plain).first)
        #expect(ByteString(member.member.path) == PackTables.Contents.memberName)
        let contents = try PackTables.Contents(member.content, frames: frames, pack: "pack")
        for record in contents.records {
          let found = try #require(object.find(record.id))
          #expect(found.frame == record.frame)
          #expect(found.offset == record.offset)
          #expect(Int(found.pack) == number)
        }
        blobs += contents.records.count
      }
      #expect(blobs == object.blobs)
    }
  }

  @Test func framesAreWithinTheirLimits() throws {
    _ = try fill()
    for object in try LoadedIndex.loadAll(from: repository.storage).objects {
      let plain = (0..<object.packs).flatMap { number in
        let pack = object.pack(number)
        return (0..<pack.frames).map { Int(object.frame(pack.firstFrame + $0).plain) }
      }
      // A member larger than the limit has its own frame: at most 8 MiB and its headers.
      #expect(plain.allSatisfy { $0 <= FileWriter.wholeLimit + 4096 })
      #expect(plain.contains { $0 > FrameBuilder.dataLimit / 2 })
    }
  }

  /// Only frames that contain parts of a single large file, as after changes of a database, are
  /// marked as such.
  @Test func framesOfOneFileAreFound() throws {
    let first = [PackMembers.part(of: "folders/a/main.db", at: 0), "folders/a/main.db"]
    for (names, isOneFile) in [
      ([first[0]], true), ([first[1]], true),
      ([first[0], PackMembers.part(of: "folders/a/main.db", at: 1 << 40)], true),
      ([first[0], PackMembers.part(of: "folders/b/main.db", at: 4096)], false),
      ([first[0], first[1]], false),
      (["folders/a/0000000000000000", "folders/a/0000000000000001"], false),
      ([first[0], "folders/a/note", PackMembers.part(of: "folders/a/main.db", at: 4096)], false),
    ] {
      var builder = try FrameBuilder(limit: FrameBuilder.dataLimit)
      // The previous frame has no effect.
      _ = try builder.append(TarMember(path: [1], size: 1), bytes: [1].span, blobs: [])
      _ = builder.finish()
      for name in names {
        let member = TarMember(path: Array(name.bytes), size: 1)
        _ = try builder.append(member, bytes: [1].span, blobs: [])
      }
      #expect(builder.finish()?.isOneFile == isOneFile, "\(names)")
    }
  }

  /// Returns the frames with file contents, each as the names of its members.
  private func members() throws -> [[String]] {
    var frames: [[String]] = []
    for object in try LoadedIndex.loadAll(from: repository.storage).objects {
      for number in 0..<object.packs {
        let pack = object.pack(number)
        let bytes = try repository.storage.load(
          RepositoryLayout.tested.pack(pack.id), limit: Int(pack.size))
        var decompressor = try ZstdDecompressor()
        for position in try SeekTable(tail: bytes.span).frameRanges.dropLast() {
          let plain = try decompressor.decompress(
            Array(bytes[position.stored]), limit: FormatLimit.frame)
          frames.append(
            try TarReader.members(of: plain).map { ByteString($0.member.path).description })
        }
      }
    }
    return frames.filter { !$0.contains { $0.hasPrefix(".sandboxctl/trees/") } }
  }

  /// Text alternates with incompressible data: they are not compressed together.
  @Test func incompressibleDataHasItsOwnFrames() throws {
    var random = SeededBytes(seed: 23)
    var files: [(name: String, bytes: [UInt8])] = []
    for number in 0..<12 {
      let line = String(repeating: "a line of text \(number)\n", count: 50_000)
      files.append(("text-\(number)", Array(line.utf8)))
      files.append(("noise-\(number)", random.bytes(400_000)))
    }
    let snapshot = try repository.back(up: files)
    let kinds = try members().map { frame in
      Set(frame.map { $0.contains("noise") ? "noise" : "text" })
    }
    #expect(kinds.filter { $0 == ["noise"] }.count >= 4)
    #expect(kinds.filter { $0 == ["text"] }.count >= 2)
    // The rest of both, at the end, may share a frame.
    #expect(kinds.filter { $0.count == 2 }.count <= 1)
    let reader = try repository.beginReading()
    for file in files {
      #expect(try reader.bytes(at: ByteString(file.name), in: snapshot) == file.bytes)
    }
  }

  /// A small run makes one small frame, not two.
  @Test func smallRemaindersShareAFrame() throws {
    var random = SeededBytes(seed: 24)
    let text = Array(String(repeating: "words ", count: 1000).utf8)
    let noise = random.bytes(5000)
    let snapshot = try repository.back(up: [("noise", noise), ("text", text)])
    #expect(try members().map(\.count) == [2])
    let reader = try repository.beginReading()
    #expect(try reader.bytes(at: "noise", in: snapshot) == noise)
    #expect(try reader.bytes(at: "text", in: snapshot) == text)
  }

  @Test func incompressibleDataIsHardlyLarger() throws {
    var random = SeededBytes(seed: 22)
    let snapshot = try repository.back(up: [("noise", random.bytes(6 << 20))])
    #expect(snapshot.snapshot.totals.stored < (6 << 20) + 8192)
  }
}

struct PackContentsTests {
  private let frames = [
    FrameLocation(offset: 0, stored: 10, plain: 1000),
    FrameLocation(offset: 10, stored: 10, plain: 100),
  ]

  private func record(frame: UInt16 = 0, offset: UInt32 = 512, length: UInt32 = 100) -> BlobRecord {
    let id = BlobID(kind: .data, digest: Blake2b.hash([1]))
    return BlobRecord(id: id, frame: frame, offset: offset, length: length)
  }

  private func read(_ bytes: [UInt8]) throws -> PackTables.Contents {
    try PackTables.Contents(bytes, frames: frames, pack: "pack")
  }

  @Test func packHasTheDocumentedBytes() throws {
    var contents = PackTables.Contents()
    contents.records = [record()]
    let salt = [UInt8](repeating: 0xaa, count: 16)
    var expected = String(repeating: "aa", count: 16) + "7362787061636b00 01000000 01000000"
    expected += Blake2b.hash([1]).hex + "00000000 0000 00 00 00020000 64000000"
    #expect(Hex.encode(contents.encode(salt: salt)) == expected.filter { $0 != " " })
    #expect(try read(contents.encode()) == contents)
    #expect(contents.encode() != contents.encode())
  }

  @Test func invalidContentsAreRefused() {
    var lies = [
      record(frame: 1), record(frame: 9), record(offset: 901), record(offset: .max),
      record(length: 0), record(length: UInt32(FormatLimit.blob + 1)),
    ]
    lies.append(record())
    lies[6].pack = 1
    for lie in lies {
      var contents = PackTables.Contents()
      contents.records = [record(), lie]
      #expect(storeError { try read(contents.encode()) }?.code == .damaged, "\(lie)")
    }
    var contents = PackTables.Contents()
    contents.records = [record()]
    let good = contents.encode()
    for (position, value) in [(16, 0), (38 + 32, 3), (39 + 32, 1), (28, 2), (28, 0)]
      as [(Int, UInt8)]
    {
      var bytes = good
      bytes[position] = value
      #expect(storeError { try read(bytes) }?.code == .damaged, "\(position)")
    }
    var newer = good
    newer[24] = 2
    #expect(storeError { try read(newer) }?.code == .unsupported)
    for count in good.indices {
      #expect(storeError { try read(Array(good.prefix(count))) } != nil)
    }
  }
}
