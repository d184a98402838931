import ArchiveStore
import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import RemoteStorage

/// Ranges that are prefetched for their readers.
struct ExpectedRangesTests {
  private let memory = MemoryObjectStorage()
  private let bytes: [UInt8]

  /// 12 MiB in blocks that differ.
  init() {
    let block = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    var bytes: [UInt8] = []
    for number in 0..<3072 {
      bytes += block
      bytes[number * 4096 + 5] = UInt8(truncatingIfNeeded: number)
      bytes[number * 4096 + 9] = UInt8(truncatingIfNeeded: number >> 8)
    }
    self.bytes = bytes
  }

  private func path(_ number: Int) -> ObjectPath {
    ObjectPath.root.appending("packs").appending(ByteString("p\(number)"))
  }

  /// Adjacent ranges with small gaps, in two objects.
  private func ranges(_ seed: UInt64) throws -> [ObjectRange] {
    for number in 0..<2 { try memory.save(bytes, as: path(number), by: .root) }
    var random = Seeded(seed)
    var ranges: [ObjectRange] = []
    for number in 0..<2 {
      var offset = 0
      while offset < bytes.count - (1 << 20) {
        let count = Int.random(in: 1..<(512 << 10), using: &random)
        ranges.append(
          ObjectRange(path: path(number), range: UInt64(offset)..<UInt64(offset + count)))
        offset += count + (Bool.random(using: &random) ? 0 : 100)
      }
    }
    return ranges
  }

  private func isRight(_ range: ObjectRange, _ read: [UInt8]) -> Bool {
    read == Array(bytes[Int(range.range.lowerBound)..<Int(range.range.upperBound)])
  }

  private func load(_ range: ObjectRange, _ storage: any Storage) throws -> [UInt8] {
    try storage.load(range.path, offset: range.range.lowerBound, count: range.range.count)
  }

  @Test func readersGetTheirBytesByFewRequests() throws {
    let ranges = try ranges(1)
    let storage = ReadAheadStorage(memory, connections: 3)
    memory.state.withLock { $0.requests = [] }
    storage.expect(ranges)
    let next = Atomic(0)
    let wrong = Atomic(0)
    let readers = try Workers(count: 4, capacity: 4, name: "reader")
    for _ in 0..<4 {
      readers.submit {
        while true {
          let number = next.add(1, ordering: .relaxed).oldValue
          guard number < ranges.count else { return }
          let read = try? load(ranges[number], storage)
          if read.map({ isRight(ranges[number], $0) }) != true {
            wrong.add(1, ordering: .relaxed)
          }
        }
      }
    }
    readers.finish()
    storage.expect([])
    #expect(wrong.load(ordering: .relaxed) == 0)
    let requests = memory.state.withLock { $0.requests }.count
    #expect(ranges.count > 40 && requests < 14, "\(requests) for \(ranges.count)")
  }

  /// Reads in another order, repeated reads, reads that stop early, and reads of an unexpected
  /// range also return the right bytes, and none waits forever.
  @Test(arguments: 2..<5 as Range<UInt64>) func anyOrderIsRight(seed: UInt64) throws {
    var random = Seeded(seed)
    let ranges = try ranges(seed)
    let storage = ReadAheadStorage(memory, connections: 2)
    storage.expect(ranges)
    for range in ranges.shuffled(using: &random).prefix(30) {
      #expect(isRight(range, try load(range, storage)))
      #expect(isRight(range, try load(range, storage)))
    }
    let odd = ObjectRange(path: path(1), range: 5..<(6 << 20))
    #expect(isRight(odd, try load(odd, storage)))
    storage.expect(ranges)
    storage.expect([])
    #expect(isRight(ranges[0], try load(ranges[0], storage)))
  }

  /// Ranges that fit into the pieces kept in memory are requested once, in any order.
  @Test func fewRangesAreHeldUntilTheyAreRead() throws {
    let ranges = try ranges(7)
    let storage = ReadAheadStorage(memory, connections: 2)
    memory.state.withLock { $0.requests = [] }
    storage.expect(ranges)
    for range in ranges.reversed() { #expect(isRight(range, try load(range, storage))) }
    storage.expect([])
    let requests = memory.state.withLock { $0.requests }.count
    #expect(requests < 10, "\(requests) for \(ranges.count)")
  }

  /// If a range cannot be fetched, only its reader gets the error.
  @Test func failuresAreReportedToTheirReaderOnly() throws {
    let ranges = try ranges(6)
    let storage = ReadAheadStorage(memory, connections: 2)
    try memory.remove(path(1))
    storage.expect(ranges)
    for range in ranges {
      if range.path == path(0) {
        #expect(isRight(range, try load(range, storage)))
      } else {
        #expect(throws: StoreError.self) { try load(range, storage) }
      }
    }
    storage.expect([])
  }

  /// Memory that is new to a process costs as much time as copying the bytes into it, so buffers
  /// are reused: each is large enough for any piece, and referred to by no reader.
  @Test func piecesReuseTheMemoryOfEarlierReads() throws {
    for number in 0..<6 { try memory.save(bytes, as: path(number), by: .root) }
    let storage = MovesStorage(base: memory)
    let ranges = (0..<6).flatMap { number in
      (0..<12).map { ObjectRange(path: path(number), range: $0 << 20..<($0 + 1) << 20) }
    }
    let expected = ExpectedRanges(ranges, from: storage, threads: 1)
    var read: [UInt8] = []
    for range in ranges {
      try #require(try expected.take(range, into: &read))
      #expect(isRight(range, read))
    }
    expected.end()
    let (loads, moves) = storage.counts.withLock { $0 }
    #expect(loads == 18)
    #expect(moves == 0)
  }
}

/// Counts the reads, and those whose buffer gets other memory because it is too small or shared.
private final class MovesStorage: ForwardingStorage {
  let base: any Storage
  let counts = Mutex((loads: 0, moves: 0))

  init(base: any Storage) { self.base = base }

  func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    let bytes = try base.load(path, offset: offset, count: count)
    let before = Self.address(buffer)
    buffer.removeAll(keepingCapacity: true)
    buffer += bytes
    let hasMoved = Self.address(buffer) != before
    counts.withLock { $0 = ($0.loads + 1, $0.moves + (hasMoved ? 1 : 0)) }
  }

  private static func address(_ bytes: [UInt8]) -> UnsafeRawPointer? {
    bytes.withUnsafeBytes { $0.baseAddress }
  }
}
