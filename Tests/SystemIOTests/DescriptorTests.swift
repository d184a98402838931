import Glibc
import TestSupport
import Testing

@testable import SystemIO

struct DescriptorTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("descriptor") }

  @Test func readContinuesAfterTheLastRead() throws {
    try temporary.write("0123456789", at: "f")
    let file = try temporary.directory.file("f")
    var buffer = [UInt8](repeating: 0, count: 4)
    var counts: [Int] = []
    var all: [UInt8] = []
    repeat {
      let count = try file.read(into: &buffer)
      counts.append(count)
      all += buffer[..<count]
    } while counts.last == 4
    #expect(counts == [4, 4, 2])
    #expect(all == Array("0123456789".utf8))
    let after = try file.read(into: &buffer)
    #expect(after == 0)
  }

  @Test func readFillsABufferFromAnOffset() throws {
    try temporary.write("abc", at: "f")
    let file = try temporary.directory.file("f")
    var buffer = Array("------".utf8)
    let count = try file.read(into: &buffer, from: 2)
    #expect(count == 3)
    #expect(buffer == Array("--abc-".utf8))
  }

  @Test func positionalReadsDoNotMoveTheOffset() throws {
    try temporary.write("0123456789", at: "f")
    let file = try temporary.directory.file("f")
    var buffer = [UInt8](repeating: 0, count: 2)
    #expect(try file.read(count: 3, at: 4) == Array("456".utf8))
    #expect(try file.read(count: 5, at: 8) == Array("89".utf8))
    #expect(try file.read(count: 5, at: 10) == [])
    #expect(try file.read(count: 5, at: 1 << 40) == [])
    #expect(try file.read(count: 0, at: 0) == [])
    _ = try file.read(into: &buffer)
    #expect(buffer == Array("01".utf8))
    var range = Array("......".utf8)
    #expect(try file.read(into: &range, from: 1, to: 4, at: 7) == 3)
    #expect(range == Array(".789..".utf8))
  }

  @Test func writeContinuesAfterTheLastWrite() throws {
    let file = try temporary.directory.create("f")
    try file.write(Array("abc".utf8))
    try file.write(Array("-def-".utf8), from: 1, to: 4)
    let bytes = Array("ghi".utf8)
    try file.write(bytes.span)
    #expect(try file.read(count: 20, at: 0) == Array("abcdefghi".utf8))
    try file.seek(to: 1)
    try file.write(Array("X".utf8))
    #expect(try file.read(count: 20, at: 0) == Array("aXcdefghi".utf8))
    try file.truncate(to: 2)
    #expect(try file.status().size == 2)
    try file.sync()
    try file.syncVolume()
    try file.close()
    #expect(try temporary.read("f") == Array("aX".utf8))
  }

  @Test func readAllHasALimit() throws {
    try temporary.write("12345", at: "f")
    let file = try temporary.directory.file("f")
    #expect(try file.readAll(limit: 5) == Array("12345".utf8))
    #expect(try file.readAll(limit: 6) == Array("12345".utf8))
    #expect(try file.readAll(limit: 4) == nil)
    #expect(try file.readAll(limit: 0) == nil)
    try temporary.write("", at: "empty")
    let empty = try temporary.directory.file("empty")
    #expect(try empty.readAll(limit: 0) == [])
  }

  @Test func readAllReadsFilesWithoutASize() throws {
    let file = try Descriptor.open(path: "/proc/self/status")
    #expect(try file.status().size == 0)
    let bytes = try #require(try file.readAll(limit: 1 << 20))
    #expect(bytes.starts(with: Array("Name:".utf8)))
    #expect(bytes.count > 100)
    #expect(try file.readAll(limit: 10) == nil)
  }

  @Test func holesAndDataAreReported() throws {
    let file = try temporary.directory.create("sparse")
    let block = [UInt8](repeating: 7, count: 65_536)
    try file.seek(to: 1 << 20)
    try file.write(block)
    try file.seek(to: 4 << 20)
    try file.write(block)
    try file.truncate(to: 8 << 20)
    try #require(try file.status().allocated < 8 << 20, "no sparse files on this file system")
    #expect(
      try file.extents(size: 8 << 20) == [
        Extent(offset: 0, length: 1 << 20, isHole: true),
        Extent(offset: 1 << 20, length: 65_536, isHole: false),
        Extent(offset: (1 << 20) + 65_536, length: (3 << 20) - 65_536, isHole: true),
        Extent(offset: 4 << 20, length: 65_536, isHole: false),
        Extent(offset: (4 << 20) + 65_536, length: (4 << 20) - 65_536, isHole: true),
      ])
    // The extents cover exactly the given size, even if it is smaller or larger than the file.
    #expect(try file.extents(size: 100) == [Extent(offset: 0, length: 100, isHole: true)])
    #expect(try file.extents(size: 9 << 20).map(\.length).reduce(0, +) == 9 << 20)
    #expect(try file.extents(size: 0) == [])
  }

  @Test func filesWithoutDataOrWithoutHolesAreOneExtent() throws {
    let hole = try temporary.directory.create("hole")
    try hole.truncate(to: 1 << 20)
    #expect(try hole.extents(size: 1 << 20) == [Extent(offset: 0, length: 1 << 20, isHole: true)])
    try temporary.write([UInt8](repeating: 1, count: 5000), at: "data")
    let data = try temporary.directory.file("data")
    #expect(try data.extents(size: 5000) == [Extent(offset: 0, length: 5000, isHole: false)])
  }

  @Test func withoutSupportForHolesThereIsOneExtent() throws {
    let file = try Descriptor.open(path: "/proc/self/status")
    #expect(try file.extents(size: 10) == [Extent(offset: 0, length: 10, isHole: false)])
    try temporary.write("x", at: "f")
    let plain = try temporary.directory.file("f")
    let plan = Faults.Plan(failing: [.seek], at: 1, number: EINVAL)
    let extents = try Faults.inject(plan) { () throws(SystemError) in try plain.extents(size: 1) }
    #expect(extents == [Extent(offset: 0, length: 1, isHole: false)])
  }

  @Test func aDescriptorIsClosedByCloseAndAtTheEndOfItsLife() throws {
    let (first, second): (ByteString, ByteString)
    do {
      let file = try temporary.directory.create("a")
      first = ByteString("/proc/self/fd/\(file.raw)")
      #expect(try Host.realPath(first) == temporary.path("a"))
    }
    // The number may now belong to another file, but no longer to this one.
    #expect((try? Host.realPath(first)) != temporary.path("a"))
    let file = try temporary.directory.create("b")
    second = ByteString("/proc/self/fd/\(file.raw)")
    try file.close()
    #expect((try? Host.realPath(second)) != temporary.path("b"))
  }

  @Test func aFailingCloseIsReportedAndStillCloses() throws {
    let file = try temporary.directory.create("f")
    let link = ByteString("/proc/self/fd/\(file.raw)")
    let plan = Faults.Plan(failing: [.close], at: 1, number: EIO)
    var reported: SystemError?
    // Set directly, since a closure cannot consume the descriptor.
    Faults.current = plan
    do throws(SystemError) { try file.close() } catch { reported = error }
    Faults.current = nil
    #expect(reported?.operation == .close && reported?.number == EIO)
    #expect((try? Host.realPath(link)) != temporary.path("f"))
  }

  @Test func errorsNameTheFile() throws {
    #expect(failure { _ = try Descriptor.open(path: "/no/such") }?.path == "/no/such")
    // No memory is mapped at the address 0.
    let memory: ByteString = "/proc/self/mem"
    let file = try Descriptor.open(path: memory)
    var buffer = [UInt8](repeating: 0, count: 1)
    let error = failure { _ = try file.read(into: &buffer) }
    #expect(error == SystemError(.read, memory, number: EIO))
  }

  @Test func onlyRegularFilesAreOpenedByPath() throws {
    let directory = failure { _ = try Descriptor.open(path: temporary.path) }
    #expect(directory == SystemError(.open, temporary.path, number: EISDIR))
    try temporary.directory.createSpecial("pipe", kind: .fifo, permissions: 0o600)
    let pipe = failure { _ = try Descriptor.open(path: temporary.path("pipe")) }
    #expect(pipe == SystemError(.open, temporary.path("pipe"), number: ESPIPE))
  }

  /// A FIFO is read as its data arrives. Before its first writer connects, there is no end of file.
  @Test func streamsAreReadAsTheirBytesCome() throws {
    try temporary.directory.createSpecial("pipe", kind: .fifo, permissions: 0o600)
    let path = temporary.path("pipe")
    let pipe = try Descriptor.open(path: path, allowsFIFO: true)
    var buffer = [UInt8](repeating: 0, count: 8)
    var asked = 0
    let none = try pipe.readAvailable(into: &buffer) {
      asked += 1
      return asked > 2
    }
    #expect(none == nil && asked == 3)
    let raw = open("\(path)", O_WRONLY | O_CLOEXEC)
    try #require(raw >= 0)
    let writer = Descriptor(adopting: raw, name: path)
    try writer.write([1, 2, 3])
    let some = try pipe.readAvailable(into: &buffer, from: 2) { false }
    #expect(some == 3 && buffer == [0, 0, 1, 2, 3, 0, 0, 0])
    try writer.write([UInt8](repeating: 9, count: 20))
    let full = try pipe.readAvailable(into: &buffer) { false }
    #expect(full == 8)
    try writer.close()
    var rest: [Int?] = []
    for _ in 0..<3 { rest.append(try pipe.readAvailable(into: &buffer) { false }) }
    #expect(rest == [8, 4, 0])
    // A regular file can be read as a stream as well.
    try temporary.write("abc", at: "f")
    let file = try temporary.directory.file("f")
    let count = try file.readAvailable(into: &buffer) { false }
    #expect(count == 3)
  }

  @Test func aDuplicateOutlivesTheOriginal() throws {
    let file = try temporary.directory.create("f")
    try file.write([1, 2])
    let second = try file.duplicate()
    try file.close()
    try second.write([3])
    #expect(try second.read(count: 9, at: 0) == [1, 2, 3])
    #expect(second.name.lastComponent == "f")
  }

  /// Dropping a range from the page cache affects only that range, and keeps the content.
  @Test func aRangeCanBeDroppedFromThePageCache() throws {
    guard try PageCache.canBeEmptied(in: temporary, by: .range) else {
      return print("skipped: the temporary directory has no disk, or does not report cached ranges")
    }
    var random = Seeded(1)
    let bytes = random.bytes(4 << 20)
    let file = try temporary.directory.create("f")
    let half: UInt64 = 2 << 20
    // The pages of a single write may form one unit in the cache, which is dropped completely or
    // not at all.
    try file.write(bytes.span.extracting(..<Int(half)), at: 0)
    try file.write(bytes.span.extracting(Int(half)...), at: half)
    try file.beginSync(0..<half)
    try file.endSync(0..<half)
    for empty in [0..<0, 9..<9] as [Range<UInt64>] {
      try file.endSync(empty)
      file.willNotBeReadSoon(empty)
    }
    let before = try PageCache.pages(of: temporary.path("f"))
    #expect(before.present > before.all * 9 / 10)
    file.willNotBeReadSoon(0..<half)
    let after = try PageCache.pages(of: temporary.path("f"))
    #expect(after.present > after.all * 4 / 10 && after.present < after.all * 6 / 10, "\(after)")
    #expect(try file.read(count: bytes.count, at: 0) == bytes)
  }

  /// Some flags are also known without the query that sandboxes forbid.
  @Test func flagsThatMayNotBeQueriedAreTakenFromTheStatus() throws {
    let file = try temporary.directory.create("f")
    do { try file.setFlags(FileFlags.noDump | FileFlags.noAccessTime) } catch {
      return print("skipped: the temporary directory does not support flags")
    }
    for number in [EPERM, EACCES] {
      let plan = Faults.Plan(failing: [.readFlags], at: 1, number: number)
      guard let found = try Faults.inject(plan, { try file.knownFlags() }) else {
        return print("skipped: the file system does not report flags in the status")
      }
      #expect(found.known & FileFlags.noAccessTime == 0)
      #expect(found.bits == FileFlags.noDump & found.known)
    }
    #expect(UnreadFlags.first != nil)
    #expect(try file.knownFlags()?.bits == FileFlags.noDump | FileFlags.noAccessTime)
    // Nothing is set from incomplete flags: it would clear those that are unknown.
    let error = #expect(throws: SystemError.self) {
      try Faults.inject(Faults.Plan(failing: [.readFlags], at: 1, number: EPERM)) {
        try file.setFlags(FileFlags.noDump)
      }
    }
    #expect(error?.number == EPERM)
    #expect(try file.flags() == FileFlags.noDump | FileFlags.noAccessTime)
    #expect(throws: SystemError.self) {
      try Faults.inject(Faults.Plan(failing: [.readFlags], at: 1, number: EIO)) {
        try file.flags()
      }
    }
  }

  @Test func metadataOfAnOpenFileCanBeSet() throws {
    let file = try temporary.directory.create("f")
    try file.setPermissions(0o640)
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 123_456_789)
    try file.setModified(time)
    let status = try file.status()
    #expect(status.permissions == 0o640 && status.modified == time && status.kind == .file)
    try file.setOwner(user: Host.userID, group: Host.groupID)
    if Host.userID == 0 {
      try file.setOwner(user: 12_345, group: 54_321)
      let status = try file.status()
      #expect(status.user == 12_345 && status.group == 54_321)
    }
    let before = Timestamp(seconds: -1, nanoseconds: 5)
    try file.setModified(before)
    #expect(try file.status().modified == before)
    let space = try file.space()
    #expect(space.total >= space.available && space.total > 0)
  }
}
