internal import Codecs
internal import SystemIO

/// Reads complete packs on several threads. Each thread takes the largest remaining pack. When none
/// is left, it helps with the packs still being read, so that all threads end at the same time.
struct DataCheck {
  private let packs: [PackCheck]
  private let workers: Workers?

  /// Starts to read.
  init(
    of packs: [Digest: UInt64], _ index: CheckedIndex, _ check: RepositoryCheck
  ) throws(StoreError) {
    let chosen = packs.sorted { ($1.value, $1.key) < ($0.value, $0.key) }
    let counts = chosen.isEmpty ? [:] : index.counts()
    let packs = chosen.map { pack, size in
      PackCheck(
        pack, size: size, index, expected: counts[pack] ?? 0, in: check.repository.storage,
        counters: check.counters, isStopping: check.isStopping)
    }
    self.packs = packs
    check.counters.expect(files: chosen.count, bytes: chosen.map(\.value).clampedSum)
    guard !packs.isEmpty else {
      workers = nil
      return
    }
    let threads = try StoreError.wrap { () throws(SystemError) in
      try Workers(count: check.workers, capacity: check.workers, name: "check")
    }
    for _ in 0..<check.workers { threads.submit { Self.work(packs) } }
    workers = threads
  }

  /// Waits for the threads and returns the verdicts, ordered by pack id.
  func finish() -> [PackCheck.Verdict] {
    workers?.finish()
    return packs.map { $0.finish() }.sorted { $0.pack < $1.pack }
  }

  private static func work(_ packs: [PackCheck]) {
    do throws(StoreError) {
      var check = try FrameCheck()
      for pack in packs where pack.take() { pack.work(&check) }
      for pack in packs { pack.work(&check) }
    } catch {
      for pack in packs { pack.fail(error) }
    }
  }

  /// Returns the packs that a check reads.
  static func chosen(
    of all: [Digest: UInt64], by reading: CheckReading
  ) -> [Digest: UInt64] {
    switch reading {
    case .trees: return [:]
    case .everything: return all
    case .group(let group, let count):
      return all.filter { Int($0.key.prefix) % count == group - 1 }
    case .fraction(let fraction):
      let wanted = fraction * Double(all.values.clampedSum)
      var sum = 0.0
      let packs = all.shuffled().prefix { pack in
        defer { sum += Double(pack.value) }
        return sum < wanted
      }
      return Dictionary(uniqueKeysWithValues: packs.map { ($0.key, $0.value) })
    }
  }
}
