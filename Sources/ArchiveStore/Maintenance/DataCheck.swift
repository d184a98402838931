internal import Codecs
internal import Synchronization
internal import SystemIO

/// Reads packs whole on threads of its own, the largest first, so that all end at about one time.
struct DataCheck {
  private let verdicts: Verdicts
  private let workers: Workers?

  private final class Verdicts: Sendable {
    let all = Mutex<[PackCheck.Verdict]>([])
  }

  /// Begins to read.
  init(
    _ inventory: RepositoryInventory, _ index: CheckedIndex, _ check: RepositoryCheck
  ) throws(StoreError) {
    let packs = Self.chosen(of: inventory.packs, by: check.reading)
    let verdicts = Verdicts()
    self.verdicts = verdicts
    guard !packs.isEmpty else {
      workers = nil
      return
    }
    let counts = index.counts()
    let storage = check.repository.storage
    let threads = try StoreError.wrap { () throws(SystemError) in
      try Workers(count: min(check.workers, packs.count), capacity: packs.count, name: "check")
    }
    for (pack, size) in packs {
      threads.submit {
        let verdict = Self.read(pack, size, index, counts[pack] ?? 0, storage)
        verdicts.all.withLock { $0.append(verdict) }
      }
    }
    workers = threads
  }

  /// Waits for the threads and gives what they found, in the order of the packs' ids.
  func finish() -> [PackCheck.Verdict] {
    workers?.finish()
    return verdicts.all.withLock { $0.sorted { $0.pack < $1.pack } }
  }

  private static func read(
    _ pack: Digest, _ size: UInt64, _ index: CheckedIndex, _ expected: Int,
    _ storage: any Storage
  ) -> PackCheck.Verdict {
    do {
      var check = try PackCheck(pack, size: size, in: storage)
      check.run(index, expected: expected)
      return check.verdict
    } catch {
      return PackCheck.Verdict(pack: pack, faults: [error.reason])
    }
  }

  private static func chosen(
    of all: [Digest: UInt64], by reading: CheckReading
  ) -> [(key: Digest, value: UInt64)] {
    let packs: [(key: Digest, value: UInt64)]
    switch reading {
    case .trees: packs = []
    case .everything: packs = Array(all)
    case .group(let group, let count):
      packs = all.filter { Int($0.key.prefix) % count == group - 1 }
    case .fraction(let fraction):
      let wanted = fraction * Double(all.values.reduce(0, +))
      var sum = 0.0
      packs = all.shuffled().prefix { pack in
        defer { sum += Double(pack.value) }
        return sum < wanted
      }
    }
    return packs.sorted { ($1.value, $1.key) < ($0.value, $0.key) }
  }
}
