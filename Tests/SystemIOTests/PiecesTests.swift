import Glibc
import SystemIO
import TestSupport
import Testing

struct PiecesTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("pieces") }

  /// The result of reading a file: the size of each piece of data, and the negative length of each
  /// hole.
  private func pieces(
    _ file: borrowing Descriptor, size: UInt64, isSparse: Bool = false
  ) throws -> (found: [Int], bytes: [UInt8], reached: UInt64) {
    var (found, bytes): ([Int], [UInt8]) = ([], [])
    let reached = try file.readPieces(
      size: size, isSparse: isSparse,
      data: { piece in
        found.append(piece.count)
        piece.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
      }, hole: { found.append(-Int($0)) })
    return (found, bytes, reached)
  }

  @Test func theFileIsReadInOrder() throws {
    var generator = Seeded.fresh()
    let content = generator.bytes((2 << 20) + 5)
    try temporary.write(content, at: "f")
    let file = try temporary.directory.file("f")
    let all = try pieces(file, size: UInt64(content.count))
    #expect(all.found == [Int](repeating: 256 << 10, count: 8) + [5])
    #expect(all.bytes == content && all.reached == UInt64(content.count))
    // Reading ends at the requested size or at the end of the file, whichever comes first.
    let some = try pieces(file, size: 100)
    #expect(some.bytes == Array(content[..<100]) && some.reached == 100)
    let more = try pieces(file, size: UInt64(content.count) + 10)
    #expect(more.bytes == content && more.reached == UInt64(content.count))
    #expect(try pieces(file, size: 0).found == [])
  }

  @Test func holesAreReported() throws {
    let file = try temporary.directory.create("sparse")
    try file.seek(to: 1 << 20)
    try file.write([UInt8](repeating: 7, count: 65_536))
    try file.truncate(to: 4 << 20)
    let size = try file.status().size
    try #require(try file.status().allocated < size, "no sparse files on this file system")
    let found = try pieces(file, size: size, isSparse: true)
    #expect(found.found == [-(1 << 20), 65_536, -((3 << 20) - 65_536)])
    #expect(found.reached == size)
    #expect(try pieces(file, size: size).found == [Int](repeating: 256 << 10, count: 16))
  }

  /// OpenZFS reports data that has not been written to the disk yet as holes, so files there are
  /// read completely.
  @Test func holesOfZFSAreReadAsBytes() throws {
    let file = try temporary.directory.create("sparse")
    try file.seek(to: 1 << 20)
    try file.write([7, 8, 9])
    let size = try file.status().size
    let ext4 = try Faults.inject(Faults.Plan(onFileSystem: 0xef53)) {
      try file.extents(size: size)
    }
    try #require(ext4.contains { $0.isHole }, "no sparse files on this file system")
    try Faults.inject(Faults.Plan(onFileSystem: 0x2fc1_2fc1)) {
      #expect(try file.extents(size: size) == [Extent(offset: 0, length: size, isHole: false)])
      let found = try pieces(file, size: size, isSparse: true)
      #expect(found.found.allSatisfy { $0 > 0 } && found.reached == size)
      #expect(found.bytes == [UInt8](repeating: 0, count: 1 << 20) + [7, 8, 9])
    }
  }

  @Test func thrownErrorsAreRethrown() throws {
    struct Thrown: Error {}
    try temporary.write("x", at: "f")
    let file = try temporary.directory.file("f")
    #expect(throws: Thrown.self) {
      _ = try file.readPieces(
        size: 1, isSparse: false, data: { _ in throw Thrown() }, hole: { _ in })
    }
    let plan = Faults.Plan(failing: [.read], at: 1, number: EIO)
    let error = Faults.inject(plan) { failure { _ = try pieces(file, size: 1) } }
    #expect(error == SystemError(.read, temporary.path("f"), number: EIO))
  }

  @Test func anUnnamedFileIsPrivateAndEndsWithItsDescriptor() throws {
    let file = try temporary.directory.createUnnamed()
    #expect(try temporary.directory.names() == [])
    let status = try file.status()
    #expect(status.permissions == 0o600 && status.links == 0 && status.kind == .file)
    try file.write(Array("abc".utf8))
    #expect(try file.read(count: 5, at: 0) == Array("abc".utf8))
    try file.close()
  }

  @Test func withoutSupportAnUnnamedFileHasATemporaryName() throws {
    let plan = Faults.Plan(failing: [.create], at: 1, number: EOPNOTSUPP)
    let status = try Faults.inject(plan) { try temporary.directory.createUnnamed().status() }
    #expect(plan.count == 2)
    #expect(try temporary.directory.names() == [])
    #expect(status.permissions == 0o600 && status.links == 0)
    let full = Faults.Plan(failing: [.create], at: 1, number: ENOSPC)
    let error = Faults.inject(full) { failure { _ = try temporary.directory.createUnnamed() } }
    #expect(error?.number == ENOSPC && full.count == 1)
  }

  @Test func aCloneHasTheSameContentOrIsRefused() throws {
    try temporary.write("some content", at: "f")
    let file = try temporary.directory.file("f")
    let copy = try temporary.directory.createUnnamed()
    // ext4 and tmpfs cannot clone; on other file systems the copy has the content.
    if try copy.clone(of: file) {
      #expect(try copy.read(count: 100, at: 0) == Array("some content".utf8))
    } else {
      #expect(try copy.status().size == 0)
    }
    let elsewhere = try Descriptor.open(path: "/proc/self/status")
    #expect(try copy.clone(of: elsewhere) == false)
  }

  @Test func unsupportedClonesReturnFalse() throws {
    try temporary.write("x", at: "f")
    let file = try temporary.directory.file("f")
    let copy = try temporary.directory.createUnnamed()
    for number in [EXDEV, EOPNOTSUPP, EINVAL, ENOTTY, EAGAIN, ENOSPC] {
      let plan = Faults.Plan(failing: [.clone], at: 1, number: number)
      #expect(
        try Faults.inject(plan) { () throws(SystemError) in try copy.clone(of: file) } == false)
    }
    let plan = Faults.Plan(failing: [.clone], at: 1, number: EIO)
    #expect(Faults.inject(plan) { failure { _ = try copy.clone(of: file) } }?.number == EIO)
  }

  @Test func aPauseLastsAtLeastItsDuration() {
    let start = Host.monotonicSeconds()
    Host.pause(seconds: 0.03)
    Host.pause(seconds: 0)
    Host.pause(seconds: -1)
    #expect(Host.monotonicSeconds() - start >= 0.03)
  }
}
