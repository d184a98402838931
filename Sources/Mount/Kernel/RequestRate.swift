internal import CFuse
internal import Synchronization

/// The rate at which requests arrive, and whether other programs need the processors.
///
/// While requests arrive in quick succession, as from cp(1), the receiving thread polls for the
/// next one for a while before it waits, because waking it takes as long as several answers. If
/// other programs run as well, polling would take time from them and from the program that makes
/// the requests.
final class RequestRate: Sendable {
  private let requests = Atomic<Int>(0)
  /// The times of the last request whose number is a multiple of `step`, and of the last check of
  /// other programs, in nanoseconds.
  private let mark = Atomic<UInt64>(0)
  private let look = Atomic<UInt64>(0)
  /// The number of checks in which other programs were running, minus those in which none were.
  private let others = Atomic<Int>(mostOthers)
  private let isFast = Atomic<Bool>(false)
  /// Returns the number of threads of all programs that are running or runnable; negative if it is
  /// unknown.
  private let running: @Sendable () -> Int

  /// Requests come in quick succession if `step` of them take at most `quick` nanoseconds.
  private static let step = 64
  private static let quick: UInt64 = 15_000_000
  /// The time between two checks of other programs, in nanoseconds.
  private static let interval: UInt64 = 5_000_000
  private static let mostOthers = 4

  init(running: @escaping @Sendable () -> Int = { RequestRate.runningPrograms }) {
    self.running = running
  }

  /// Whether requests come in quick succession, and no other programs need the processors.
  var isQuick: Bool {
    isFast.load(ordering: .relaxed) && others.load(ordering: .relaxed) < Self.mostOthers / 2
  }

  /// The number of threads of all programs that are running or runnable; negative if it is unknown.
  static var runningPrograms: Int { Int(cf_running()) }

  /// Notes a request. `helpers` is the number of other threads of this program that are working.
  func didReceive(helpers: Int) {
    guard requests.add(1, ordering: .relaxed).newValue % Self.step == 0 else { return }
    let now = cf_nanoseconds()
    let isFast = mark.exchange(now, ordering: .relaxed) + Self.quick >= now
    self.isFast.store(isFast, ordering: .relaxed)
    guard isFast, look.load(ordering: .relaxed) + Self.interval <= now else { return }
    look.store(now, ordering: .relaxed)
    let count = running()
    // The program that made the request waits for the answer.
    let isAlone = (0...helpers + 1).contains(count)
    let known = others.load(ordering: .relaxed)
    others.store(min(Self.mostOthers, max(0, known + (isAlone ? -1 : 1))), ordering: .relaxed)
  }
}
