import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Delivery of blobs from many frames, several of which a thread decodes and hashes together.
struct DeliveryTests {
  private let storage: MemoryStorage
  private let repository: Repository
  private let blobs: [BlobID: [UInt8]]
  private let uses: [BlobDelivery.Use]

  /// Stores files of half a megabyte, eight in a frame, each requested twice.
  init() throws {
    storage = MemoryStorage()
    repository = try Repository.create(in: storage, program: "test")
    let files = (0..<72).map { number in
      ("\(number)", [UInt8](repeating: UInt8(number), count: 500_000 + number))
    }
    _ = try repository.back(up: files)
    let named = files.map { (BlobID(kind: .data, digest: Blake2b.hash($0.1)), $0.1) }
    blobs = Dictionary(uniqueKeysWithValues: named)
    uses = named.enumerated().flatMap { number, blob in
      (0..<2).map {
        BlobDelivery.Use(
          digest: blob.0.digest, length: UInt32(blob.1.count), item: UInt32(2 * number + $0),
          offset: 0)
      }
    }
  }

  /// Each use receives its own bytes exactly once.
  @Test(arguments: [1, 3]) func everyUseReceivesItsBytes(threads: Int) throws {
    let taken = try deliver(uses, threads: threads)
    #expect(Set(taken.met) == Set(uses) && taken.met.count == uses.count)
    #expect(taken.mismatches.isEmpty && taken.refused.isEmpty && taken.wrong == 0)
  }

  /// An undecodable frame within a batch loses only its own blobs.
  @Test func damagedFrameLosesOnlyItsBlobs() throws {
    let reader = try repository.beginReading()
    let locations = try blobs.keys.map { (blob: $0, location: try #require(reader.locate($0))) }
    let frames = Set(locations.map { [$0.location.pack.hex, "\($0.location.frame)"] })
    #expect(frames.count >= 8, "there are batches of several frames")
    let hurt = try #require(locations.sorted { $0.location < $1.location }.dropFirst(30).first)
    let found = try #require(reader.index.set.find(hurt.blob))
    try storage.changeContent(RepositoryLayout.tested.pack(found.pack)) {
      $0[Int(found.frame.offset)] ^= 1
    }
    let lost = Set(
      blobs.keys.filter { blob in
        reader.locate(blob).map {
          ($0.pack, $0.frame) == (hurt.location.pack, hurt.location.frame)
        } ?? false
      }.map(\.digest))
    #expect(lost.count > 1)
    let taken = try deliver(uses, threads: 1)
    #expect(Set(taken.mismatches.map(\.digest)) == lost && taken.mismatches.count == 2 * lost.count)
    #expect(Set(taken.met) == Set(uses.filter { !lost.contains($0.digest) }))
    #expect(taken.wrong == 0 && taken.refused.isEmpty)
  }

  /// A use with the wrong length receives nothing; the others receive their bytes.
  @Test func useOfAnotherLengthIsRefused() throws {
    let odd = BlobDelivery.Use(digest: uses[9].digest, length: 499_000, item: 999, offset: 0)
    let taken = try deliver(uses + [odd], threads: 2)
    #expect(taken.refused == [odd] && taken.wrong == 0)
    #expect(Set(taken.met) == Set(uses))
  }

  // MARK: - A sink that checks all bytes

  private struct Outcome {
    var met: [BlobDelivery.Use] = []
    var refused: [BlobDelivery.Use] = []
    var mismatches: [BlobDelivery.Use] = []
    var wrong = 0
  }

  private final class Shared: Sendable {
    let blobs: [Digest: [UInt8]]
    let outcome = Mutex(Outcome())

    init(_ blobs: [BlobID: [UInt8]]) {
      self.blobs = Dictionary(uniqueKeysWithValues: blobs.map { ($0.key.digest, $0.value) })
    }
  }

  private struct Sink: BlobDelivery.Sink {
    let shared: Shared

    func receive(_ delivered: [BlobDelivery.Blob], of frame: [UInt8]) {
      shared.outcome.withLock { outcome in
        for blob in delivered {
          guard let range = blob.range else {
            outcome.refused.append(blob.use)
            continue
          }
          outcome.met.append(blob.use)
          if shared.blobs[blob.use.digest] != Array(frame[range]) { outcome.wrong += 1 }
        }
      }
    }

    func reportMissing(_ uses: [BlobDelivery.Use], _ error: StoreError) {
      shared.outcome.withLock { $0.mismatches += uses }
    }
  }

  private func deliver(_ uses: [BlobDelivery.Use], threads: Int) throws -> Outcome {
    let shared = Shared(blobs)
    let makeSink = { @Sendable in Sink(shared: shared) }
    try repository.beginReading().deliver(
      uses, threads: threads, isStopping: { false }, to: makeSink)
    return shared.outcome.withLock { $0 }
  }
}
