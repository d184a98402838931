import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// An operation that changes a repository, for tests in which something happens before any of its
/// calls.
enum HostileWork: String, CaseIterable, Sendable {
  case forget, repairPacks, repairSnapshots, repairIndex

  /// Makes a repository with three snapshots and with the damage that the operation repairs: a
  /// damaged pack that a check has recorded, or a damaged index.
  func prepare() throws -> PruneFixture {
    var fixture = try PruneFixture()
    for files in [0..<6, 4..<9, 20..<24] { try fixture.backUp(PruneFixture.files(files)) }
    switch self {
    case .forget: break
    case .repairPacks: try damage(fixture)
    case .repairSnapshots:
      try damage(fixture)
      _ = try PackRepair(fixture.repository).run()
    case .repairIndex:
      let names = try fixture.memory.list(RepositoryLayout.indexes).sorted()
      // Merges leave one index object or a few: one is damaged, and the others are removed.
      for name in names.dropFirst() {
        try fixture.memory.remove(RepositoryLayout.indexes.appending(name))
      }
      try fixture.memory.change(RepositoryLayout.indexes.appending(names[0])) { $0[70] ^= 1 }
    }
    return try fixture.copy()
  }

  private func damage(_ fixture: PruneFixture) throws {
    try fixture.flip(try fixture.pack(ofFile: 7))
    try RepositoryCheck(fixture.repository, reading: .everything, workers: 1).run().recordDamage()
  }

  /// Runs the operation, or continues an earlier run.
  func run(_ fixture: PruneFixture) throws {
    let repository = fixture.repository
    switch self {
    case .forget: _ = try SnapshotRemoval(repository).run([fixture.snapshots[0].stored.id]) { _ in }
    case .repairPacks: _ = try PackRepair(repository).run()
    case .repairSnapshots: _ = try SnapshotRepair(repository, isForgetting: true).run { _ in }
    case .repairIndex: _ = try IndexRepair(repository).run()
    }
  }

  /// Runs the operation an hour later, and again each hour after that, because a right to remove
  /// objects that has no heartbeat, or one in the future, stays taken for an hour.
  func runLater(_ fixture: PruneFixture, _ comment: Comment) throws {
    for _ in 0..<3 {
      fixture.clock.advance(by: 3700)
      // A prune first removes expired leases. It may then fail because of damage.
      _ = try? RepositoryPrune(Repository.open(fixture.memory)).run()
      if let error = storeError({ try run(fixture) }) { #expect(error.code == .busy, comment) }
    }
    let error = storeError { try run(fixture) }
    #expect(error == nil, "\(comment): \(error as Any)")
    let leases = try fixture.memory.list(RepositoryLayout.leases)
    #expect(leases.isEmpty, "\(comment): \(leases)")
  }
}

/// A sweep in which something happens before each call of an operation in turn.
struct HostileSweep {
  let label: String
  /// The distance between two such calls when a sample is run.
  var stride = 11

  /// Calls `attempt` with the number of each call, until it returns false because there is no such
  /// call.
  func run(_ attempt: (_ number: Int, _ comment: Comment) throws -> Bool) throws {
    for number in Sampling.steps(stride, whole: 3, label) {
      if try !attempt(number, "\(label), call \(number)") { return }
    }
  }
}

/// The changes that a read-only volume refuses.
final class Refusals: Sendable {
  let counter = Counter()
  let events = Mutex<[String]>([])

  /// Whether only removals of leases were refused, and of the right to remove objects, which is
  /// renamed before its removal.
  var areOfLeases: Bool {
    events.withLock { events in
      events.allSatisfy { event in
        let isObject = [".json", ".index", ".tar.zst"].contains {
          event.hasSuffix($0) || event.hasSuffix($0 + TestEncryption.suffix)
        }
        let isLease =
          event.hasPrefix("rename leases/") && event.split(separator: "/").count == 2
          && event != "rename \(PruneLease.path)"
        return isLease || event.hasPrefix("remove ") && !isObject
      }
    }
  }
}

extension WatchedStorage {
  /// Calls `body` before the call with a number. Returns the counter of the calls.
  func act(at number: Int, _ body: @escaping @Sendable () -> Void) -> Counter {
    let counter = Counter()
    state.withLock { state in
      state.action = { event in
        if !Self.isFurtherPackDirectory(event), counter.next() == number { body() }
      }
    }
    return counter
  }

  /// Makes all changes fail from the call with a number on, as on a read-only volume.
  func becomeReadOnly(at number: Int) -> Refusals {
    let refusals = Refusals()
    state.withLock { state in
      state.failure = { event in
        if Self.isFurtherPackDirectory(event) || refusals.counter.next() < number { return nil }
        guard Room.isChange(event) else { return nil }
        refusals.events.withLock { $0.append(event) }
        return Room.error(.rename, 30)
      }
    }
    return refusals
  }

  /// Ends the effects of `act` and `becomeReadOnly`.
  func calm() { state.withLock { ($0.action, $0.failure) = (nil, nil) } }
}

extension PruneFixture {
  /// Returns the files that no snapshot contains, in the form of `lost`.
  func lostFiles() throws -> Set<String> {
    let reader = try Repository.open(memory).beginReading()
    let present = try Repository.open(memory).snapshots().snapshots
    var lost: Set<String> = []
    for (number, snapshot) in snapshots.enumerated() {
      let sequence = snapshot.stored.snapshot.sequence
      for (name, bytes) in snapshot.files {
        let found = present.filter { $0.snapshot.sequence == sequence }.map {
          try? reader.bytes(at: ByteString(name), in: $0)
        }
        if !found.contains(bytes) { lost.insert("\(number): \(name)") }
      }
    }
    return lost
  }

  /// Repairs packs and snapshots after a loss, and prunes. No damage must remain.
  func repairAndPrune(_ comment: Comment? = nil) throws {
    clock.advance(by: 3700)
    _ = try IndexRepair(repository).run()
    _ = try PackRepair(repository).run()
    _ = try SnapshotRepair(repository, isForgetting: true).run { _ in }
    _ = try prune()
    let findings = try findings()
    #expect(findings.isEmpty, "\(findings) \(comment?.rawValue ?? "")")
  }

  /// Makes the clock of the storage jump. Another program then prunes.
  func jump(by seconds: Double) {
    clock.advance(by: seconds)
    guard let other = try? Repository.open(memory) else { return }
    _ = try? RepositoryPrune(other).run()
  }
}
