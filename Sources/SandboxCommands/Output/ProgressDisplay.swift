internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// Shows on standard error how far an operation is, by a thread of its own, till it is ended.
///
/// On a terminal one line is drawn over and over, at most ten times a second; elsewhere a line is
/// written each minute if that is wanted, or to standard output each second an event in JSON. SIGUSR1
/// writes a line once, wherever. Whoever writes to the terminal besides does so by `DrawnLine`, or ends
/// the display first.
final class ProgressDisplay {
  private let thread: Workers
  private let isEnded: StopFlag

  /// What is shown, and how often.
  enum Manner: Sendable {
    case line
    case eachMinute
    /// A line of JSON on standard output, each second.
    case events
    /// Only when it is asked for.
    case onRequest
  }

  /// Begins to show what the counters say.
  ///
  /// - Parameter lastLine: what is said where work that has nothing to bring to an end does not stop
  ///   soon when it is asked to, as it waits for who reads its output; the program ends then. Work
  ///   without it is waited for.
  init(_ counters: ProgressCounters, _ manner: Manner, lastLine: String? = nil) throws {
    try StopSignals.watch()
    thread = try Workers(count: 1, capacity: 1, name: "progress")
    let flag = StopFlag()
    isEnded = flag
    thread.submit {
      var drawing = ProgressDrawing(manner, counters)
      while !flag.isSet {
        guard drawing.step(counters) == .stop else { continue }
        if let lastLine {
          Self.end(saying: lastLine, unless: flag)
        } else {
          DrawnLine.write(Self.stopping)
        }
      }
      DrawnLine.past {}
    }
  }

  private static let stopping =
    "sandboxctl: stopping: what is begun is brought to an end; a second signal ends at once"

  /// How long work may take to stop that has nothing to bring to an end.
  private static let patience = 1.0

  private static func end(saying line: String, unless isEnded: StopFlag) {
    let end = Host.monotonicSeconds() + patience
    while !isEnded.isSet {
      let left = end - Host.monotonicSeconds()
      if left > 0 {
        _ = StopSignals.wait(milliseconds: Int32(left * 1000) + 1)
      } else {
        DrawnLine.write(line)
        StopSignals.end()
      }
    }
  }

  /// Ends the display; the line is erased.
  func end() {
    isEnded.set()
    StopSignals.wake()
    thread.finish()
  }

  deinit { end() }
}

/// What the display's thread does.
private struct ProgressDrawing {
  private let errors = StandardStream.errors()
  private let output = StandardStream.output()
  private let manner: ProgressDisplay.Manner
  private var text = ProgressText()
  private var next: Double

  /// Seconds between two looks.
  private static let interval = 0.1
  private static let minute = 60.0
  private static let second = 1.0

  init(_ manner: ProgressDisplay.Manner, _ counters: ProgressCounters) {
    // A terminal that does not say how wide it is cannot be drawn on.
    self.manner = manner == .line && (errors.columns ?? 0) < 20 ? .onRequest : manner
    next = Host.monotonicSeconds() + Self.interval
    if manner == .eachMinute { next += Self.minute }
    if manner == .events { next += Self.second }
    text.take(counters.progress, at: Host.monotonicSeconds())
  }

  /// Waits for what comes next, shows it and tells what it was.
  mutating func step(_ counters: ProgressCounters) -> StopSignals.Event {
    // A second at most, should it not be woken.
    let wait = manner == .onRequest ? 1 : min(1, max(0, next - Host.monotonicSeconds()))
    let event = StopSignals.wait(milliseconds: Int32(wait * 1000) + 1)
    text.take(counters.progress, at: Host.monotonicSeconds())
    switch event {
    case .ask: write(text.line)
    case .stop, .woken: break
    case .nothing: show()
    }
    return event
  }

  private mutating func show() {
    let now = Host.monotonicSeconds()
    guard manner != .onRequest, now >= next else { return }
    switch manner {
    case .line:
      next = now + Self.interval
      draw()
    case .events:
      next = now + Self.second
      tell()
    case .eachMinute, .onRequest:
      next = now + Self.minute
      write(text.line)
    }
  }

  private mutating func draw() {
    // One column stays free: a full line would wrap on some terminals.
    guard let columns = errors.columns else { return }
    DrawnLine.draw(text.line(columns: columns - 1))
  }

  /// Writes an event in one call, so that it stands on a line of its own. Where standard output is
  /// gone the result will say so.
  private func tell() {
    try? output.write(text.progress.json.compact + "\n")
    try? output.flush()
  }

  private func write(_ line: String) { DrawnLine.write("sandboxctl: \(line)") }
}
