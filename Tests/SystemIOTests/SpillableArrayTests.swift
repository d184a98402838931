import TestSupport
import Testing

@testable import SystemIO

struct SpillableArrayTests {
  /// Returns a pool that keeps nothing in memory, whose file is in a scratch directory.
  private func spilling(_ scratch: borrowing TemporaryDirectory) -> SpillPool {
    SpillPool(budget: 0, directories: [scratch.path("")])
  }

  private struct Row: BitwiseCopyable, Equatable {
    var number: Int
    var flag: Bool
  }

  @Test(arguments: [0, 1 << 40]) func growsLikeAnArray(budget: Int) throws {
    let scratch = try TemporaryDirectory("spill")
    let pool = SpillPool(budget: budget, directories: [scratch.path("")])
    var rows = SpillableArray<Row>(in: pool)
    for number in 0..<100_000 { rows.append(Row(number: number, flag: number % 3 == 0)) }
    #expect(rows.count == 100_000)
    #expect((pool.spilledBytes > 0) == (budget == 0))
    for number in stride(from: 0, to: 100_000, by: 7) { rows[number].flag = true }
    #expect(
      rows.enumerated().allSatisfy { $1.number == $0 && $1.flag == ($0 % 3 == 0 || $0 % 7 == 0) })
    #expect(rows[99_990...].map(\.number) == Array(99_990..<100_000))
  }

  @Test func aCopyIsIndependent() throws {
    let scratch = try TemporaryDirectory("spill")
    var first = SpillableArray(repeating: 1, count: 200_000, in: spilling(scratch))
    let second = first
    first[17] = 2
    first.append(3)
    #expect(second[17] == 1 && second.count == 200_000)
    #expect(first[17] == 2 && first.last == 3)
  }

  @Test func takesCollectionsAndSpans() throws {
    let scratch = try TemporaryDirectory("spill")
    var bytes = SpillableArray<UInt8>(in: spilling(scratch))
    bytes.append(contentsOf: [1, 2, 3])
    bytes.append(contentsOf: (4...6).lazy.map { UInt8($0) })
    bytes.append([UInt8](repeating: 7, count: 200_000).span)
    bytes.append([UInt8]().span)
    #expect(Array(bytes[..<8]) == [1, 2, 3, 4, 5, 6, 7, 7] && bytes.count == 200_006)
    bytes.removeLast(200_000)
    #expect(bytes.withSpan { $0.count } == 6)
    #expect(SpillableArray<UInt8>().withSpan { $0.count } == 0)
  }

  /// Many short arrays, each of which would be on the heap, can be made to spill.
  @Test func shortArraysSpillOnRequest() throws {
    let scratch = try TemporaryDirectory("spill")
    let pool = spilling(scratch)
    var rows = SpillableArray(repeating: UInt64(3), count: 1000, in: pool)
    #expect(pool.spilledBytes == 0 && rows.byteCount == 8000)
    rows.makeSpillable()
    let spilled = pool.spilledBytes
    #expect(spilled >= 8000 && rows.allSatisfy { $0 == 3 })
    rows.makeSpillable()
    #expect(pool.spilledBytes == spilled)
  }

  /// The disk space of a released table is freed, so that growing tables do not fill the disk.
  @Test func releasesItsDiskSpace() throws {
    let scratch = try TemporaryDirectory("spill")
    let pool = spilling(scratch)
    for _ in 0..<50 {
      let rows = SpillableArray(repeating: UInt64(7), count: 200_000, in: pool)
      #expect(rows.last == 7)
      #expect(pool.fileBytes >= 1_600_000 && pool.fileBytes < 4 << 20)
    }
    #expect(pool.spilledBytes == 0 && pool.fileBytes < 1 << 20)
  }

  @Test func staysInMemoryIfTheFileCannotBeCreated() throws {
    let pool = SpillPool(budget: 0, directories: ["/proc/self/fd/none"])
    let rows = SpillableArray(repeating: UInt64(9), count: 200_000, in: pool)
    #expect(rows.allSatisfy { $0 == 9 } && pool.spilledBytes == 0)
  }

  /// No other process can open the file, because it has no name.
  @Test func theFileHasNoName() throws {
    let scratch = try TemporaryDirectory("spill")
    let rows = SpillableArray(repeating: UInt64(9), count: 200_000, in: spilling(scratch))
    #expect(try scratch.directory.names().isEmpty && rows.count == 200_000)
  }

  /// Threads can read while others create and release tables in the same pool.
  @Test func poolServesThreads() throws {
    let scratch = try TemporaryDirectory("spill")
    let pool = spilling(scratch)
    let shared = SpillableArray(repeating: UInt64(5), count: 200_000, in: pool)
    let workers = try Workers(count: 4, capacity: 16, name: "spill")
    let wrong = Counter()
    for number in 0..<16 {
      workers.submit {
        var own = SpillableArray<UInt64>(in: pool)
        for value in 0..<200_000 { own.append(UInt64(value + number)) }
        if own.last != UInt64(199_999 + number) || !shared.allSatisfy({ $0 == 5 }) { wrong.add() }
      }
    }
    workers.finish()
    #expect(wrong.value == 0)
  }
}
