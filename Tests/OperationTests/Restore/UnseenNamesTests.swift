import SystemIO
import TestSupport
import Testing

@testable import Restore

/// The names that a restore with `--delete` has not found in the snapshot.
struct UnseenNamesTests {
  /// Random names of any bytes are looked up in any order, with the same result as in a set.
  @Test(arguments: [41, 42, 43] as [UInt64]) func namesAreThoseOfASet(seed: UInt64) throws {
    var random = Seeded(seed)
    let temporary = try TemporaryDirectory("unseen", inMemory: true)
    var expected: Set<ByteString> = []
    for _ in 0..<300 { expected.insert(ByteString(random.fileName(longest: 3))) }
    for name in expected { try temporary.directory.create(name).close() }
    var unseen = try UnseenNames(of: temporary.directory)
    #expect(unseen.names == expected && unseen.count == expected.count)
    let isSorted = seed == 41
    var asked = (0..<200).map { _ in ByteString(random.fileName(longest: 3)) }
    asked += expected.filter { _ in Bool.random(using: &random) }
    asked += asked.prefix(20)
    for name in isSorted ? asked.sorted() : asked {
      unseen.remove(name)
      expected.remove(name)
    }
    #expect(unseen.names == expected && unseen.count == expected.count)
    #expect(expected.count > 30)
  }

  @Test func anEmptyDirectoryHasNoNames() throws {
    let temporary = try TemporaryDirectory("unseen", inMemory: true)
    var unseen = try UnseenNames(of: temporary.directory)
    unseen.remove("a")
    #expect(unseen.names.isEmpty && unseen.count == 0)
  }
}
