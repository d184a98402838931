import Glibc
import SystemIO
import TestSupport
import Testing

struct ByteStringTests {
  @Test func composedAndDecomposedNamesAreDifferent() throws {
    let (composed, decomposed): (ByteString, ByteString) = ("caf\u{e9}", "cafe\u{301}")
    #expect(String(decoding: composed.bytes, as: UTF8.self) == "cafe\u{301}")
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
    let temporary = try TemporaryDirectory("names")
    try temporary.write("one", at: composed)
    try temporary.write("two", at: decomposed)
    #expect(try temporary.directory.names() == [decomposed, composed])
    #expect(try temporary.read(composed) == Array("one".utf8))
  }

  @Test(arguments: [
    Array("line\nbreak".utf8), [0xff, 0xfe], [0xc3], [0x80, 0x2e], [0x2e, 0x2e, 0x2e],
    [0x5c], [0x1b, 0x5b, 0x33, 0x31, 0x6d], [0xed, 0xa0, 0x80], [0x20],
  ])
  func anyBytesCanBeAName(bytes: [UInt8]) throws {
    let name = ByteString(bytes)
    let temporary = try TemporaryDirectory("bytes")
    try temporary.write(bytes, at: name)
    let names = try temporary.directory.names()
    #expect(names == [name])
    #expect(names.first.map { Array($0.bytes) } == bytes)
    #expect(try temporary.read(name) == bytes)
  }

  @Test func aNameWithNULIsRefusedByEveryCall() throws {
    let name = ByteString([0x61, 0, 0x62])
    #expect(name.hasNUL)
    #expect(!ByteString("ab").hasNUL)
    let temporary = try TemporaryDirectory("nul")
    // A call that stopped at the NUL would find this file or create it.
    try temporary.write("kept", at: "a")
    let directory = try Directory.open(path: temporary.path)
    #expect(failure { _ = try directory.file(name) }?.number == ENOENT)
    #expect(failure { _ = try directory.create(name) }?.number == ENOENT)
    #expect(failure { _ = try directory.status(name) }?.number == ENOENT)
    #expect(failure { try directory.remove(name) }?.number == ENOENT)
    #expect(failure { try directory.createDirectory(name) }?.number == ENOENT)
    #expect(failure { try directory.createLink(name, to: "a") }?.number == ENOENT)
    #expect(failure { try directory.rename("a", to: name, in: directory) }?.number == ENOENT)
    #expect(failure { _ = try Descriptor.open(path: temporary.path.appending(name)) } != nil)
    #expect(try directory.names() == ["a"])
    #expect(try temporary.read("a") == Array("kept".utf8))
  }

  @Test func namesCompareByBytes() {
    let names: [ByteString] = ["b", "a", ByteString([0xff]), "", "ab", "B", ByteString([0x61, 0])]
    let sorted: [ByteString] = [
      "", "B", "a", ByteString([0x61, 0]), "ab", "b", ByteString([0xff]),
    ]
    #expect(names.sorted() == sorted)
    #expect(!(ByteString("a") < "a"))
  }

  @Test func namesSortByUnsignedBytes() {
    var random = Seeded.fresh()
    for _ in 0..<500 {
      let (left, right) = (random.fileName(longest: 6), random.fileName(longest: 6))
      #expect(
        (ByteString(left) < ByteString(right)) == left.lexicographicallyPrecedes(right),
        "seed \(random.seed)")
      #expect((ByteString(left) == ByteString(right)) == (left == right), "seed \(random.seed)")
    }
  }

  @Test func countAndSpanAreInBytes() {
    let name: ByteString = "a\u{e9}"
    #expect(name.count == 3)
    #expect(!name.isEmpty)
    #expect(ByteString("").isEmpty)
    #expect(Array(name.bytes) == [0x61, 0xc3, 0xa9])
    #expect(name.withSpan { $0.count } == 3)
    #expect(name.withSpan { $0[2] } == 0xa9)
    #expect(ByteString(name.bytes) == name)
    #expect(ByteString(sequence(first: UInt8(65)) { $0 < 67 ? $0 + 1 : nil }) == "ABC")
  }

  @Test func onlyValidUTF8HasText() {
    #expect(ByteString("\u{e9}").utf8 == "\u{e9}")
    #expect(ByteString([0xff]).utf8 == nil)
    #expect(ByteString([0xc3]).utf8 == nil)
    #expect(ByteString("").utf8 == "")
  }

  @Test func pathsAreJoinedWithOneSlash() {
    #expect(ByteString("a").appending("b") == "a/b")
    #expect(ByteString("a/").appending("b") == "a/b")
    #expect(ByteString("a").appending("/b") == "a/b")
    #expect(ByteString("/").appending("b") == "/b")
    #expect(ByteString("").appending("b") == "b")
    #expect(ByteString("a").appending("") == "a")
  }

  @Test func pathsAreSplitIntoComponents() {
    #expect(ByteString("/a//b/").components == ["a", "b"])
    #expect(ByteString("/").components.isEmpty)
    #expect(ByteString("a/b").lastComponent == "b")
    #expect(ByteString("a/b/").lastComponent == "b")
    #expect(ByteString("/").lastComponent == nil)
    #expect(ByteString("").lastComponent == nil)
    #expect(ByteString("/a").isAbsolute)
    #expect(!ByteString("a").isAbsolute)
    #expect(!ByteString("").isAbsolute)
  }

  @Test func componentsAreJoinedWithOneSlash() {
    #expect(ByteString(joining: ["a", "b", "c"]) == "a/b/c")
    #expect(ByteString(joining: ["a"], isAbsolute: true) == "/a")
    #expect(ByteString(joining: []) == "")
    #expect(ByteString(joining: [], isAbsolute: true) == "/")
  }

  @Test func relativePathHasNoLeadingSlash() {
    #expect(ByteString("a/b/c").relative(to: "a") == "b/c")
    #expect(ByteString("a/b").relative(to: "a/") == "b")
    #expect(ByteString("/a").relative(to: "/") == "a")
    #expect(ByteString("a").relative(to: "a") == "")
    #expect(ByteString("a/b").relative(to: "") == "a/b")
  }

  @Test func isWithinComparesComponents() {
    #expect(ByteString("a/b").isWithin("a"))
    #expect(ByteString("a").isWithin("a"))
    #expect(!ByteString("ab").isWithin("a"))
    #expect(!ByteString("a").isWithin("a/b"))
    #expect(ByteString("/a").isWithin("/"))
    #expect(ByteString("a/b").isWithin("a/"))
    #expect(ByteString("a").isWithin(""))
  }
}
