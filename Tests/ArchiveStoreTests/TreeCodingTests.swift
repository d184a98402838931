import Codecs
import SystemIO
import Testing

@testable import ArchiveStore

struct TreeCodingTests {
  static let digest = Blake2b.hash(Array("x".utf8))

  /// An entry of each type with all possible members.
  static let samples: [TreeEntry] = [
    TreeEntry(name: "a", node: .file(.empty)),
    TreeEntry(
      name: "b",
      node: .file(
        Content(
          size: 1100, level: 0,
          pieces: [.blob(digest, length: 1000), .hole(length: 100)])),
      permissions: 0o4711, owner: 1000, group: 100,
      modified: Timestamp(seconds: 1_700_000_000, nanoseconds: 5),
      attributes: [
        Attribute(name: "system.posix_acl_access", value: .inline([1, 2])),
        Attribute(name: "user.long", value: .blob(digest, length: 600)),
      ], flags: 0x10, linkGroup: "folders/x/b",
      extensions: [TreeEntry.Extension(key: 128, value: [0x18, 0x64])]),
    TreeEntry(
      name: "c", node: .file(Content(size: 99, level: 1, pieces: [.blob(digest, length: 99)]))),
    TreeEntry(name: "d", node: .directory(TreeReference(digest)), permissions: 0o700),
    TreeEntry(name: "e", node: .symlink(target: "../\u{e9}")),
    TreeEntry(name: "f", node: .fifo, modified: Timestamp(seconds: -1, nanoseconds: 999_999_999)),
    TreeEntry(name: "g", node: .socket),
    TreeEntry(name: "h", node: .characterDevice(TreeEntry.DeviceNumber(major: 1, minor: 3))),
    TreeEntry(name: "i", node: .blockDevice(TreeEntry.DeviceNumber(major: 259, minor: 0))),
    TreeEntry(name: ByteString([0xff, 0x0a]), node: .file(.empty)),
  ]

  private func page(_ entries: [TreeEntry]) -> [UInt8] {
    TreeCoding.encodePage(entries.map(TreeEntryCoding.encode)[...])
  }

  private func decode(_ bytes: [UInt8]) throws -> TreeBlob {
    try TreeCoding.decode(bytes, object: "the tree")
  }

  private func refusal(_ bytes: [UInt8]) -> StoreError? { storeError { try decode(bytes) } }

  @Test func writtenEntriesAreReadBack() throws {
    #expect(try decode(page(Self.samples)) == .page(Self.samples))
    #expect(try decode(page([])) == .page([]))
    #expect(Self.samples.allSatisfy { $0.fault == nil })
  }

  @Test func treeHasTheDocumentedBytes() {
    #expect(Hex.encode(page([])) == "a0")
    #expect(Hex.encode(page([Self.samples[0]])) == "a10081a1004161")
    let x = Self.digest.hex
    var expected = "ac00416202190 9c9 031903e8 041864 051a6553f100 0605 0719044c"
    expected += "0882 82 1903e8 5820" + x + "1864"
    expected += "0e82 82 57 73797374656d2e706f7369785f61636c5f616363657373 42 0102"
    expected += "82 49 757365722e6c6f6e67 82 190258 5820" + x
    expected += "0f10 10 4b 666f6c646572732f782f62 1880 1864"
    let bytes = TreeEntryCoding.encode(Self.samples[1])
    #expect(Hex.encode(bytes) == expected.filter { $0 != " " })
    let directory = TreeEntryCoding.encode(Self.samples[3])
    #expect(Hex.encode(directory) == "a40041640101021901c00a5820" + x)
    #expect(
      Hex.encode(TreeEntryCoding.encode(Self.samples[4])) == "a30041650102" + "0b452e2e2fc3a9")
    #expect(Hex.encode(TreeEntryCoding.encode(Self.samples[7])) == "a400416801050c010d03")
  }

  @Test func tableHasTheDocumentedBytes() throws {
    let pages = [
      TreeBlob.Page(last: "a", digest: Self.digest), TreeBlob.Page(last: "b", digest: Self.digest),
    ]
    let bytes = TreeCoding.encodeTable(pages)
    let x = Self.digest.hex
    #expect(Hex.encode(bytes) == "a101828241615820" + x + "8241625820" + x)
    #expect(try decode(bytes) == .table(pages))
  }

  @Test func unsafeNamesAreRefused() {
    let names: [ByteString] = [
      "", ".", "..", "a/b", "/", "/a", ByteString([0x61, 0]),
      ByteString([UInt8](repeating: 0x61, count: 256)),
    ]
    for name in names {
      let entry = TreeEntry(name: name, node: .file(.empty))
      #expect(entry.fault != nil, "\(name)")
      #expect(refusal(page([entry]))?.code == .damaged, "\(name)")
    }
  }

  @Test func entriesOutOfOrderAreRefused() {
    let (a, b) = (Self.samples[0], Self.samples[1])
    #expect(refusal(page([b, a]))?.reason.contains("out of order") == true)
    #expect(refusal(page([a, a]))?.reason.contains("is a duplicate") == true)
  }

  @Test func valuesOutOfRangeAreRefused() {
    let long = Attribute(name: "user.a", value: .inline([UInt8](repeating: 0, count: 513)))
    let short = Attribute(name: "user.a", value: .blob(Self.digest, length: 512))
    let (a, b) = (
      Attribute(name: "a", value: .inline([])), Attribute(name: "b", value: .inline([]))
    )
    let blob = Piece.blob(Self.digest, length: 10)
    let file = { (size: UInt64, level: UInt8, pieces: [Piece]) in
      TreeEntry(name: "x", node: .file(Content(size: size, level: level, pieces: pieces)))
    }
    let bad: [TreeEntry] = [
      TreeEntry(name: "x", node: .fifo, permissions: 0o10000),
      TreeEntry(
        name: "x", node: .fifo, modified: Timestamp(seconds: 0, nanoseconds: 1_000_000_000)),
      TreeEntry(name: "x", node: .fifo, attributes: [long]),
      TreeEntry(name: "x", node: .fifo, attributes: [short]),
      TreeEntry(name: "x", node: .fifo, attributes: [b, a]),
      TreeEntry(name: "x", node: .fifo, attributes: [a, a]),
      TreeEntry(name: "x", node: .fifo, attributes: [Attribute(name: "", value: .inline([]))]),
      TreeEntry(name: "x", node: .symlink(target: "")),
      TreeEntry(name: "x", node: .symlink(target: ByteString([0x61, 0]))),
      TreeEntry(name: "x", node: .fifo, linkGroup: "/etc/passwd"),
      TreeEntry(name: "x", node: .fifo, linkGroup: "a/../b"),
      TreeEntry(name: "x", node: .directory(TreeReference(Self.digest)), linkGroup: "a"),
      file(11, 0, [blob]), file(9, 0, [blob]), file(0, 1, []), file(10, 3, [blob]),
      file(20, 1, [blob, .hole(length: 10)]), file(20, 0, [.hole(length: 10), .hole(length: 10)]),
      file(
        UInt64(FormatLimit.blob) + 1, 0, [.blob(Self.digest, length: UInt64(FormatLimit.blob) + 1)]),
      file(2570, 0, [Piece](repeating: blob, count: 257)),
    ]
    for entry in bad {
      #expect(refusal(page([entry]))?.code == .damaged, "\(entry)")
    }
  }

  /// Bytes that this encoder never writes.
  @Test func nonCanonicalBytesAreRefused() {
    let bad = [
      "", "00", "80", "a0a0", "a100", "a10080", "bfff", "a10081a0",
      // an unknown key below 128, a duplicate key, keys out of order
      "a10081a20041611100", "a10081a20041610041 62", "a10081a201010041 61",
      // explicit defaults: type 0, owner 0, mode 0644, size 0, seconds 0, no pieces
      "a10081a20041610100", "a10081a20041610300", "a10081a2004161021901a4",
      "a10081a20041610700", "a10081a20041610500", "a10081a20041610880", "a10081a20041610e80",
      // a key that does not fit the type: the target of a file, the size of a directory, a missing
      // key of a directory or a link
      "a10081a20041610b4178", "a10081a30041610101 0701", "a10081a20041610101", "a10081a20041610102",
      "a10081a20041610c01",
      // an unknown type, an owner of more than 32 bits, a name that is a text string
      "a10081a20041610107", "a10081a2004161031b0000000100000000", "a10081a1006161",
      // a number not in its shortest form, a truncated extension
      "a10081a2004161031801", "a10081a2004161188081",
      // entries and pages in one blob, a table of one page, equal names
      "a20081a1004161018182416158 20", "a1018182416158 20" + String(repeating: "00", count: 32),
    ]
    for text in bad {
      guard let bytes = Hex.decode(text.replacing(" ", with: "")) else {
        Issue.record("\(text) is no hexadecimal")
        continue
      }
      #expect(refusal(bytes) != nil, "\(text)")
    }
  }

  @Test func everyFlippedBitIsRefusedOrGivesASafeTree() throws {
    let bytes = page(Self.samples)
    for position in bytes.indices {
      for bit in 0..<8 {
        var changed = bytes
        changed[position] ^= 1 << UInt8(bit)
        guard case .page(let entries)? = try? decode(changed) else { continue }
        #expect(entries.allSatisfy { $0.fault == nil })
        #expect(page(entries) == changed)
      }
    }
    for count in bytes.indices { #expect(refusal(Array(bytes.prefix(count))) != nil) }
  }

  @Test func unknownKeysFrom128AreKept() throws {
    var entry = Self.samples[0]
    entry.extensions = [
      TreeEntry.Extension(key: 128, value: [0x01]),
      TreeEntry.Extension(key: 131, value: [0x41, 0x20]),
      TreeEntry.Extension(key: 9999, value: [0x82, 0x01, 0xf6]),
    ]
    #expect(try decode(page([entry])) == .page([entry]))
    entry.extensions = [TreeEntry.Extension(key: 127, value: [0x01])]
    #expect(entry.fault != nil)
    entry.extensions = [TreeEntry.Extension(key: 128, value: [0x81])]
    #expect(entry.fault != nil)
  }

  @Test func claimedEntriesAllocateNoMemory() {
    #expect(refusal([0xa1, 0x00, 0x9b, 0, 0, 0, 0xff, 0, 0, 0, 0]) != nil)
    #expect(refusal([0xa1, 0x00, 0x81, 0xa1, 0x00, 0x5b, 0, 0, 0, 0xff, 0, 0, 0, 0]) != nil)
  }

  @Test func deviceNumbersAreEncodedAsOnLinux() {
    let number = TreeEntry.DeviceNumber(linux: 0x0123_4567_89ab_cdef)
    #expect(number.linux == 0x0123_4567_89ab_cdef)
    #expect(TreeEntry.DeviceNumber(linux: 0x0103) == TreeEntry.DeviceNumber(major: 1, minor: 3))
    #expect(TreeEntry.DeviceNumber(major: 259, minor: 1).linux == 0x10301)
  }
}

struct TreePagesTests {
  private func names(_ count: Int) -> [ByteString] {
    (0..<count).map { ByteString("name-\($0 + 1_000_000)") }
  }

  private func pages(_ names: [ByteString], size: Int = 10) throws -> [Range<Int>] {
    var directory = EncodedDirectory()
    for name in names {
      try name.withSpan { try directory.append($0, [UInt8](repeating: 0, count: size)) }
    }
    return TreeCoding.pages(of: directory)
  }

  @Test func smallDirectoriesAreOnePage() throws {
    #expect(try pages([]) == [0..<0])
    #expect(try pages(names(256)) == [0..<256])
  }

  @Test func pagesAreWithinTheirLimits() throws {
    let names = names(60_000)
    let pages = try pages(names)
    #expect(pages.count > 5)
    #expect(pages.first?.lowerBound == 0)
    #expect(pages.last?.upperBound == 60_000)
    #expect(zip(pages, pages.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
    #expect(pages.dropLast().allSatisfy { (256...16_384).contains($0.count) })
    for page in pages.dropLast() where page.count < 16_384 {
      let last = names[page.upperBound - 1]
      #expect(Blake2b.hash(Array(last.bytes)).leadingZeroBitCount >= 12)
    }
  }

  @Test func insertionMovesFewPages() throws {
    var list = names(60_000)
    let before = Set(try pages(list).map { Array(list[$0]) })
    list.append("name-1020000x")
    list.sort()
    let after = Set(try pages(list).map { Array(list[$0]) })
    #expect(before.subtracting(after).count <= 2)
  }

  @Test func pagesOfLargeEntriesAreShorter() throws {
    let pages = try pages(names(40), size: 1 << 20)
    #expect(pages.count == 10)
    #expect(pages.allSatisfy { $0.count == 4 })
  }
}
