import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Checks of a percentage of the data read different packs each time, and together all of them.
struct CheckRoundTests {
  private static func packs(_ count: Int, _ random: inout SeededBytes) -> [Digest: UInt64] {
    var packs: [Digest: UInt64] = [:]
    for _ in 0..<count {
      packs[Blake2b.hash(random.bytes(8))] = UInt64(random.number(1..<64_000_000))
    }
    return packs
  }

  @Test(arguments: [0.001, 0.05, 0.1, 0.3, 1.0 / 3, 0.5, 0.99, 1])
  func roundReadsEachPackOnce(_ fraction: Double) {
    var random = SeededBytes(seed: 3)
    for count in [0, 1, 2, 19, 500] {
      let packs = Self.packs(count, &random)
      var round = CheckRound()
      var read: [Digest] = []
      var checks = 0
      repeat {
        let taken = round.next(fraction, of: packs)
        #expect(packs.isEmpty || !taken.isEmpty)
        read += taken.keys
        checks += 1
      } while round != CheckRound()
      #expect(Set(read) == Set(packs.keys) && read.count == packs.count)
      #expect(checks <= Int((1 / fraction).rounded(.up)))
    }
  }

  /// Each check reads about its fraction of the bytes.
  @Test func checksReadEqualShares() {
    var random = SeededBytes(seed: 4)
    let packs = Self.packs(2000, &random)
    let all = packs.values.clampedSum
    var round = CheckRound()
    for _ in 0..<20 {
      let share = Double(round.next(0.05, of: packs).values.clampedSum) / Double(all)
      #expect(share > 0.045 && share < 0.055, "\(share)")
    }
    #expect(round == CheckRound())
  }

  /// Backups add packs and prunes remove some between the checks: a pack that exists throughout is
  /// read within one round.
  @Test func changingPacksAreReadWithinARound() {
    for seed in 0..<50 {
      var random = SeededBytes(seed: UInt64(seed))
      let fraction = Double(random.number(2..<60)) / 100
      let checks = Int((1 / fraction).rounded(.up))
      var packs = Self.packs(random.number(1..<200), &random)
      let staying = Set(packs.keys.filter { _ in random.number(0..<2) == 0 })
      var round = CheckRound()
      var read: Set<Digest> = []
      for _ in 0..<checks {
        read.formUnion(round.next(fraction, of: packs).keys)
        packs.merge(Self.packs(random.number(0..<20), &random)) { $1 }
        packs = packs.filter { staying.contains($0.key) || random.number(0..<8) > 0 }
      }
      #expect(staying.isSubset(of: read), "seed \(seed)")
    }
  }

  @Test func progressIsStored() throws {
    let directory = TemporaryDirectory()
    let file = CheckRoundFile(directory: ByteString(directory("cache")))
    #expect(file.load() == CheckRound())
    var random = SeededBytes(seed: 5)
    let packs = Self.packs(9, &random)
    var round = CheckRound()
    _ = round.next(0.25, of: packs)
    file.save(round)
    #expect(file.load() == round && round != CheckRound())
    for text in [
      "", "{}", #"{"version":2,"last":null,"remaining":0.5}"#,
      #"{"version":1,"last":null,"remaining":0}"#, #"{"version":1,"last":null,"remaining":1.5}"#,
      #"{"version":1,"last":"ab","remaining":0.5}"#,
    ] {
      #expect(CheckRound(decoding: Array(text.utf8)) == nil, "\(text)")
    }
  }

  /// If the progress cannot be stored, checks do not read the same packs repeatedly.
  @Test func checksWithoutProgressReadRandomPacks() throws {
    var fixture = try PruneFixture()
    for number in 0..<6 { try fixture.backUp(PruneFixture.files(number..<(number + 1))) }
    let rounds = CheckRoundFile(directory: "/dev/null/cache")
    #expect(!rounds.save(CheckRound()))
    var read: Set<Digest> = []
    for _ in 0..<80 where try read.count < fixture.packs().count {
      read.formUnion(
        try RepositoryCheck(
          fixture.repository, reading: .fraction(0.25), rounds: rounds, workers: 1
        ).run().run.soundPacks)
    }
    #expect(try read == fixture.packs())
  }

  /// Four checks of a quarter each read every pack of a repository, even if another one is
  /// interrupted.
  @Test func checksOfAQuarterReadAll() throws {
    var fixture = try PruneFixture()
    for number in 0..<6 { try fixture.backUp(PruneFixture.files(number..<(number + 1))) }
    let directory = TemporaryDirectory()
    let rounds = CheckRoundFile(directory: ByteString(directory("cache")))
    func check(isStopping: @escaping @Sendable () -> Bool = { false }) throws -> Set<Digest> {
      let result = try RepositoryCheck(
        fixture.repository, reading: .fraction(0.25), rounds: rounds, workers: 1,
        isStopping: isStopping
      ).run()
      result.recordRound()
      return result.run.soundPacks
    }
    #expect(throws: StoreError.self) { try check { true } }
    #expect(rounds.load() == CheckRound())
    var read: [Digest] = []
    for number in 0..<4 {
      read += try check()
      #expect((rounds.load() == CheckRound()) == (number == 3))
    }
    #expect(try Set(read) == fixture.packs() && read.count == 12)
    // The next round begins with the same packs.
    #expect(try read.prefix(2).allSatisfy(check().contains))
  }
}
