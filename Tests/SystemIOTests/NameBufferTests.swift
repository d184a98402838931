import Glibc
import SystemIO
import TestSupport
import Testing

struct NameBufferTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("names") }

  @Test func aPathIsExtendedAndShortened() {
    var name = NameBuffer()
    var seen = [name.copy]
    name.descend("a".utf8.span)
    seen.append(name.copy)
    name.descend("b".utf8.span)
    name.extend("-wal".utf8.span)
    seen.append(name.copy)
    name.shorten(to: 3)
    seen.append(name.copy)
    name.shorten(to: 9)
    let count = name.count
    name.set("c".utf8.span)
    seen.append(name.copy)
    #expect(seen == ["", "a", "a/b-wal", "a/b", "c"])
    #expect(count == 3)
  }

  @Test func statusDoesNotFollowLinks() throws {
    try temporary.write("text", at: "d/f")
    try temporary.directory.createLink("l", to: "d")
    var name = NameBuffer()
    func status(_ path: String) throws -> FileStatus? {
      name.set(path.utf8.span)
      return try temporary.directory.statusIfPresent(name)
    }
    #expect(try status("d/f")?.size == 4)
    #expect(try status("d/f")?.kind == .file)
    #expect(try status("l")?.kind == .symlink)
    #expect(try status("none") == nil)
    #expect(try status("d/f/g") == nil)
    #expect(try status("d\0/f") == nil)
    let plan = Faults.Plan(failing: [.status], at: 1, number: EACCES)
    let error = Faults.inject(plan) { failure { _ = try status("d/f") } }
    #expect(error?.number == EACCES && error?.path == temporary.path("d/f"))
  }

  @Test(arguments: [1, 63, 64, 65, 200]) func theBeginningOfAFileIsCompared(length: Int) throws {
    let bytes = (0..<length).map { UInt8($0 & 0xff) }
    try temporary.write(bytes + [1, 2, 3], at: "longer")
    try temporary.write(bytes, at: "equal")
    try temporary.write(bytes.dropLast() + [0xee], at: "other")
    try temporary.write(Array(bytes.dropLast()), at: "shorter")
    try temporary.directory.createLink("link", to: "equal")
    var name = NameBuffer()
    func begins(_ path: String) throws -> Bool {
      name.set(path.utf8.span)
      return try temporary.directory.begins(name, with: bytes.span)
    }
    #expect(try begins("longer") && begins("equal"))
    #expect(try !begins("other") && !begins("shorter"))
    #expect(failure { _ = try begins("link") }?.isLink == true)
    #expect(failure { _ = try begins("none") }?.isMissing == true)
  }
}
