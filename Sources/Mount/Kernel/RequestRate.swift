internal import CFuse
internal import Synchronization

/// The rate at which requests arrive, and whether other programs want the processors.
///
/// While they arrive in quick succession, as those of cp(1), the thread that receives looks for the
/// next one for a while before it waits: to be woken takes as long as several answers. If other
/// programs run as well, that would take time from them, and from the program that asks.
final class RequestRate: Sendable {
  private let requests = Atomic<Int>(0)
  /// The times of the last request whose number is a multiple of `step`, and of the last look at
  /// the programs, in nanoseconds.
  private let mark = Atomic<UInt64>(0)
  private let look = Atomic<UInt64>(0)
  /// The number of looks at which other programs ran, less those at which none did.
  private let others = Atomic<Int>(mostOthers)
  private let isFast = Atomic<Bool>(false)
  /// Returns the number of threads of all programs that run or want to; negative if it is not
  /// known.
  private let running: @Sendable () -> Int

  /// Requests come in quick succession if `step` of them take at most `quick` nanoseconds.
  private static let step = 64
  private static let quick: UInt64 = 15_000_000
  /// The time between two looks at the programs, in nanoseconds.
  private static let interval: UInt64 = 5_000_000
  private static let mostOthers = 4

  init(running: @escaping @Sendable () -> Int = { RequestRate.runningPrograms }) {
    self.running = running
  }

  /// Whether requests come in quick succession, and no other programs want the processors.
  var isQuick: Bool {
    isFast.load(ordering: .relaxed) && others.load(ordering: .relaxed) < Self.mostOthers / 2
  }

  /// The number of threads of all programs that run or want to; negative if it is not known.
  static var runningPrograms: Int { Int(cf_running()) }

  /// Notes a request. `helpers` is the number of other threads of this program that work.
  func didReceive(helpers: Int) {
    guard requests.add(1, ordering: .relaxed).newValue % Self.step == 0 else { return }
    let now = cf_nanoseconds()
    let isFast = mark.exchange(now, ordering: .relaxed) + Self.quick >= now
    self.isFast.store(isFast, ordering: .relaxed)
    guard isFast, look.load(ordering: .relaxed) + Self.interval <= now else { return }
    look.store(now, ordering: .relaxed)
    let count = running()
    // The program that asks waits for the answer.
    let isAlone = (0...helpers + 1).contains(count)
    let known = others.load(ordering: .relaxed)
    others.store(min(Self.mostOthers, max(0, known + (isAlone ? -1 : 1))), ordering: .relaxed)
  }
}
