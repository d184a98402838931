import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Frames that a prune copies unchanged although some of their data is unused.
struct MovedFramesTests {
  /// The size of a file of incompressible data, five of which fill a frame.
  private static let size = 200_000
  private static let files = PruneFixture.files(0..<20, size: size)

  /// A repository with four frames: the first two are unused, the third has one unused file, and
  /// the last is used completely.
  private func fixture() throws -> PruneFixture {
    var fixture = try PruneFixture()
    try fixture.backUp(Self.files)
    try fixture.backUp(Array(Self.files[11...]))
    try fixture.forget(0)
    return fixture
  }

  private func request(_ limit: PruneRequest.UnusedLimit) -> PruneRequest {
    var request = PruneRequest()
    request.maxUnused = limit
    return request
  }

  /// Returns the numbers of the files in each frame.
  private func frames(of fixture: PruneFixture) throws -> Set<Set<Int>> {
    let numbers = Dictionary(
      uniqueKeysWithValues: Self.files.enumerated().map { (Blake2b.hash($1.bytes), $0) })
    return Set(try fixture.dataFrames().map { Set($0.compactMap { numbers[$0] }) })
  }

  @Test func framesWithinTheLimitMove() throws {
    var fixture = try fixture()
    #expect(
      try frames(of: fixture) == [Set(0..<5), Set(5..<10), Set(10..<15), Set(15..<20)])
    let before = try fixture.storedBytes()
    let report = try fixture.prune(request(.fraction(0.2)), workers: 2)
    #expect(try frames(of: fixture) == [Set(10..<15), Set(15..<20)])
    let pack = try #require(report.plan.packs.first { $0.action == .rewrite && $0.hasData })
    #expect(pack.reason == .mostlyUnused)
    let size = UInt64(Self.size)
    #expect((size - 1000...size + 1000).contains(pack.moved), "\(pack.moved)")
    // The plan predicts the freed bytes, except for tables and headers.
    let freed = before - (try fixture.storedBytes())
    #expect((10 * size - 20_000...10 * size + 20_000).contains(freed), "\(freed)")
    #expect(report.plan.freedBytes.distance(to: freed).magnitude < 20_000)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)

    // The unused file is in the index: a backup of it stores no data, and relies on it.
    let packs = try fixture.packs()
    try fixture.backUp(Array(Self.files[10...]))
    #expect(try fixture.packs().subtracting(packs).count == 1, "only trees are new")
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  @Test(arguments: [.bytes(0), .fraction(0), .bytes(150_000)] as [PruneRequest.UnusedLimit])
  func framesBeyondTheLimitAreWrittenAgain(limit: PruneRequest.UnusedLimit) throws {
    let fixture = try fixture()
    let report = try fixture.prune(request(limit))
    #expect(report.plan.packs.allSatisfy { $0.moved == 0 })
    #expect(try frames(of: fixture) == [Set(11..<15), Set(15..<20)])
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// A frame is not copied unchanged if one of its unused blobs is also in a pack that stays: no
  /// table would list the second copy, and no prune could remove it.
  @Test func framesWithBlobsOfOtherPacksAreWrittenAgain() throws {
    var fixture = try PruneFixture()
    let other = try fixture.repository.beginWriting()
    try fixture.backUp(Self.files)
    let files = PruneFixture.files(30..<34, size: Self.size)
    var entries: [TreeEntry] = []
    for file in files + [Self.files[10]] {
      let content = try other.storeFile(
        logicalPath: ByteString("folders/test/" + file.name), bytes: file.bytes)
      entries.append(TreeEntry(name: ByteString(file.name), node: .file(content)))
    }
    let tree = try other.storeTree(entries.dropLast())
    let stored = try other.finish(fixture.repository.makeSnapshot(tree, sequence: 2))
    fixture.snapshots.append((stored, files))
    try fixture.backUp(Array(Self.files[11...]))
    try fixture.forget(0)

    let report = try fixture.prune(request(.fraction(0.2)))
    #expect(report.plan.packs.contains { $0.moved > 0 })
    #expect(try frames(of: fixture) == [Set(11..<15), Set(15..<20), [10], []])
    _ = try fixture.prune(request(.bytes(0)))
    #expect(try frames(of: fixture) == [Set(11..<15), Set(15..<20), []])
    let used = UInt64(13 * Self.size)
    #expect((used..<used + 20_000).contains(try fixture.storedBytes()))
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// If the volume has no room for the unused data, no frame with unused data is copied unchanged.
  @Test func noUnusedDataMovesWithoutRoom() throws {
    let fixture = try fixture()
    let needed = UInt64(Self.size) * 9 * 17 / 16 + 1 << 20
    fixture.storage.state.withLock {
      $0.space = VolumeSpace(available: needed + UInt64(Self.size) / 2, total: 1 << 30)
    }
    let report = try fixture.prune(request(.fraction(0.2)))
    #expect(report.removedPacks > 0 && report.plan.packs.allSatisfy { $0.moved == 0 })
    #expect(try frames(of: fixture) == [Set(11..<15), Set(15..<20)])
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// Additional threads, which only wait for requests, get no packs of their own.
  @Test func aPruneHasAsManyPackersAsProcessors() throws {
    let fixture = try PruneFixture()
    func packers(workers: Int) throws -> Int {
      try PackRemoval.run(
        in: fixture.repository, for: "prune", workers: workers, cache: nil
      ) { $0.session.packers.all.count }
    }
    #expect(try packers(workers: 64) == packers(workers: Host.processors))
  }

  /// Unused data that stays in other packs counts towards the limit as well.
  @Test(arguments: 1...6) func unusedDataMeetsTheLimit(seed: UInt64) throws {
    var random = Seeded(seed)
    var fixture = try PruneFixture()
    for _ in 0..<4 {
      let first = Int.random(in: 0..<60, using: &random)
      let files = PruneFixture.files(first..<(first + 40), size: 40_000)
      try fixture.backUp(files)
      try fixture.backUp(files.filter { _ in Int.random(in: 0..<3, using: &random) > 0 })
      try fixture.forget(fixture.snapshots.count - 2)
    }
    for percent in [30, 10, 3, 0] {
      let limit = request(.fraction(Double(percent) / 100))
      _ = try fixture.prune(limit, workers: 2)
      let plan = try fixture.plan(limit).plan
      let (used, unused) = (plan.packs.map(\.used).clampedSum, plan.packs.map(\.unused).clampedSum)
      #expect(unused * 100 <= (used + unused) * UInt64(percent), "\(unused) beside \(used)")
      #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty, "\(percent) %")
    }
  }

  /// A frame with an unused blob that does not match its hash is not copied unchanged: its used
  /// blobs are stored again, and the damaged one is in no table.
  @Test(arguments: [false, true]) func damagedUnusedBlobsDoNotMove(isDamaged: Bool) throws {
    let fixture = try PruneFixture()
    let session = try fixture.repository.beginWriting()
    let contents = PruneFixture.files(0..<3).map(\.bytes)
    let wrong = Blake2b.hash(isDamaged ? [1] : contents[2])
    let blobs = zip(contents.indices, contents.map(Blake2b.hash)).map { number, digest in
      let id = BlobID(kind: .data, digest: number == 2 ? wrong : digest)
      return PackFrame.Blob(id: id, offset: number * 2000, length: 2000)
    }
    for blob in blobs { #expect(session.known.claim(blob.id, length: blob.length)) }
    var compressor = try ZstdCompressor()
    let plain = Array(contents.joined())
    let stored = try compressor.compress(plain)
    try session.packers.append(PackFrame(stored: stored, plain: plain.count, blobs: blobs))
    try session.checkpoint()
    let (pack, size) = try #require(try RepositoryListing.packSizes(fixture.memory).first)

    var frames = try PackFrames(
      fixture.repository.storage, movingUpTo: UnusedShare(of: 1, in: 2))
    try frames.open(pack, size: size)
    let frame = try #require(try frames.next { $0.digest != wrong })
    #expect(frame.used.count == 2 && frame.unused.map(\.digest) == [wrong])
    #expect(frame.mayMove == !isDamaged)
    session.abandon()
  }

  @Test func sharesAreRoundedUp() {
    let shares = [(0, 100), (1, 1 << 40), (1, 64), (2, 64), (32, 64), (33, 64), (64, 64)].map {
      UnusedShare(of: $0, in: $1)
    }
    #expect(shares[0] == .none && shares[0] < shares[1])
    #expect(shares[1] == shares[2])
    #expect(zip(shares[2...], shares[3...]).allSatisfy { $0 < $1 })
    #expect(UnusedShare(of: 0, in: 0) == .none)
  }

  /// A frame that is half unused or more is never copied unchanged, whatever the limit.
  @Test func shareWithinALimit() {
    var bytes = UnusedShare.Bytes()
    let (small, half) = (UnusedShare(of: 1, in: 64), UnusedShare(of: 31, in: 64))
    bytes.add(100, small)
    bytes.add(1000, half)
    bytes.add(10_000, UnusedShare(of: 1, in: 2))
    #expect(bytes.share(within: 99) == .none)
    #expect(bytes.share(within: 100) >= small && bytes.share(within: 1099) < half)
    #expect(bytes.share(within: 1100) == half && bytes.share(within: .max) == half)
    #expect(bytes.total(upTo: bytes.share(within: .max)) == 1100)
    var sum = bytes
    sum.add(bytes)
    #expect(sum.total(upTo: half) == 2200 && sum.total(upTo: small) == 200)
  }
}
