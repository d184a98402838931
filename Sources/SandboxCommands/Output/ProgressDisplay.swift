internal import ArchiveStore
internal import Codecs
internal import RemoteStorage
internal import Synchronization
internal import SystemIO

/// Shows the progress of an operation on standard error, on a separate thread, until it is ended.
///
/// On a terminal one line is redrawn at most ten times a second. Elsewhere a line is written every
/// minute if requested, or a JSON event to standard output every second. SIGUSR1 writes a line at
/// any time. Other code that writes to the terminal uses `DrawnLine`, or ends the display first.
final class ProgressDisplay {
  private let thread: Workers
  private let isEnded: StopFlag

  /// The form of the display, and its frequency.
  enum Manner: Sendable {
    case line
    case eachMinute
    /// A line of JSON on standard output, every second.
    case events
    /// Only on SIGUSR1.
    case onRequest
  }

  /// The end of work that can be abandoned because nothing of it remains for the program to finish.
  struct Abandonment: Sendable {
    /// The message, after which the program ends.
    let lastLine: String
    /// Called before the program ends.
    let release: @Sendable () -> Void
  }

  /// Starts to show the counters.
  ///
  /// - Parameters:
  ///   - isJSON: whether the lines on standard error are JSON.
  ///   - abandonment: the end of work that does not stop soon after a signal, for example because
  ///     it waits for the reader of its output. Without one, the display waits for the work.
  init(
    _ counters: ProgressCounters, _ manner: Manner, isJSON: Bool = false,
    abandonment: Abandonment? = nil
  ) throws {
    try StopSignals.watch()
    thread = try Workers(count: 1, capacity: 1, name: "progress")
    let flag = StopFlag()
    isEnded = flag
    thread.submit {
      var drawing = Drawing(manner, counters, isJSON: isJSON)
      while !flag.isSet {
        guard drawing.step(counters) == .stop else { continue }
        if let abandonment {
          Self.end(by: abandonment, unless: flag)
        } else {
          DrawnLine.write(Console.line(ofProgress: Self.stopping, isJSON: isJSON))
        }
      }
      DrawnLine.past {}
    }
  }

  private static let stopping =
    "stopping after the current step; a second signal ends the program at once"

  /// The time within which work that can be abandoned must stop, in seconds.
  private static let patience = 1.0

  private static func end(by abandonment: Abandonment, unless isEnded: StopFlag) {
    let end = Host.monotonicSeconds() + patience
    while !isEnded.isSet {
      let left = end - Host.monotonicSeconds()
      if left > 0 {
        _ = StopSignals.wait(milliseconds: Int32(left * 1000) + 1)
      } else {
        DrawnLine.write(abandonment.lastLine)
        abandonment.release()
        StopSignals.end()
      }
    }
  }

  /// Ends the display and erases the line.
  func end() {
    isEnded.set()
    StopSignals.wake()
    thread.finish()
  }

  deinit { end() }
}

extension ProgressDisplay.Manner {
  /// Selects a progress line if the terminal supports it; otherwise a line every minute if
  /// requested.
  init(canDraw: Bool = true, isVerbose: Bool) {
    let isDumb = Host.environment("TERM").map { $0 == "dumb" } ?? true
    let isLine = canDraw && StandardStream.errors().isTerminal && !isDumb
    self = isLine ? .line : isVerbose ? .eachMinute : .onRequest
  }
}

extension ProgressDisplay {
  /// The work of the display's thread.
  private struct Drawing {
    private let errors = StandardStream.errors()
    private let output = StandardStream.output()
    private let manner: ProgressDisplay.Manner
    private let isJSON: Bool
    private var text = ProgressText()
    private var next: Double

    /// The time between two updates, in seconds.
    private static let interval = 0.1
    private static let minute = 60.0
    private static let second = 1.0

    init(_ manner: ProgressDisplay.Manner, _ counters: ProgressCounters, isJSON: Bool) {
      self.isJSON = isJSON
      // A terminal of unknown width cannot be drawn on.
      self.manner = manner == .line && (errors.columns ?? 0) < 20 ? .onRequest : manner
      next = Host.monotonicSeconds() + Self.interval
      if manner == .eachMinute { next += Self.minute }
      if manner == .events { next += Self.second }
      update(counters)
    }

    private mutating func update(_ counters: ProgressCounters) {
      text.update(
        counters.progress, TransferCounts.ofProcess.state, at: Host.monotonicSeconds())
    }

    /// Waits for the next event, shows it and returns it.
    mutating func step(_ counters: ProgressCounters) -> StopSignals.Event {
      // At most a second, in case a wake-up is lost.
      let wait = manner == .onRequest ? 1 : min(1, max(0, next - Host.monotonicSeconds()))
      let event = StopSignals.wait(milliseconds: Int32(wait * 1000) + 1)
      update(counters)
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
        printLine()
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

    /// Writes an event with one call, on a line of its own. An error of standard output is reported
    /// with the result.
    private func printLine() {
      try? output.write(text.progress.json(TransferCounts.ofProcess.state).compact + "\n")
      try? output.flush()
    }

    private func write(_ line: String) {
      DrawnLine.write(Console.line(ofProgress: line, isJSON: isJSON))
    }
  }

  /// A flag that one thread sets and others read.
  private final class StopFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    var isSet: Bool { flag.load(ordering: .acquiring) }

    func set() { flag.store(true, ordering: .releasing) }
  }
}

/// The progress line on the terminal. There is only one, on standard error.
enum DrawnLine {
  private static let isDrawn = Mutex<Bool>(false)

  /// Draws the line over the previous one. Errors are ignored, since they cannot be reported.
  static func draw(_ text: String) {
    isDrawn.withLock { isDrawn in
      emit("\r\(text)\u{1B}[K")
      isDrawn = true
    }
  }

  /// Erases the line and calls `write`, which writes whole lines or nothing.
  static func past(_ write: () -> Void) {
    isDrawn.withLock { isDrawn in
      if isDrawn { emit("\r\u{1B}[K") }
      isDrawn = false
      write()
    }
  }

  /// Erases the line and writes another one to standard error.
  static func write(_ line: String) { past { emit(line + "\n") } }

  private static func emit(_ text: String) {
    let errors = StandardStream.errors()
    try? errors.write(text)
    try? errors.flush()
  }
}

/// The progress of an operation in words: the amounts done and to do, the speed, the time left,
/// errors, and the current file.
struct ProgressText {
  private(set) var progress = ProgressCounters.State()
  /// The transfers of repositories on other hosts.
  private var transfers = TransferCounts.State()
  /// Bytes, files and transferred bytes per second, averaged over about ten seconds.
  private var byteSpeed = 0.0
  private var fileSpeed = 0.0
  private var transferSpeed = 0.0
  private var last: Double?

  /// The period of the average, in seconds.
  private static let memory = 10.0

  /// Records the state at a time, in seconds.
  mutating func update(
    _ now: ProgressCounters.State, _ transfers: TransferCounts.State = .init(), at time: Double
  ) {
    defer {
      progress = now
      self.transfers = transfers
      last = time
    }
    guard let last, time > last else { return }
    let seconds = time - last
    let usual = min(1, seconds / Self.memory)
    let share = byteSpeed == 0 && fileSpeed == 0 ? 1 : usual
    let bytes = Double(now.bytesDone) - Double(progress.bytesDone)
    let files = Double(now.filesDone) - Double(progress.filesDone)
    byteSpeed += (max(0, bytes) / seconds - byteSpeed) * share
    fileSpeed += (max(0, files) / seconds - fileSpeed) * share
    let moved = Double(transfers.bytes) - Double(self.transfers.bytes)
    transferSpeed += (max(0, moved) / seconds - transferSpeed) * (transferSpeed == 0 ? 1 : usual)
  }

  /// The text without the current file.
  var counts: String {
    var parts = amounts
    if parts.isEmpty { return "scanning" }
    if byteSpeed >= 1, !isRead { parts.append(Self.rate(byteSpeed)) }
    if let remaining { parts.append("\(Times.duration(remaining)) left") }
    if !transfers.isEmpty {
      parts.append(transfers.amounts)
      if transferSpeed >= 1 { parts.append(Self.rate(transferSpeed)) }
    }
    if progress.problems > 0 { parts.append(Sizes.count(progress.problems, "error")) }
    return parts.joined(separator: ", ")
  }

  /// Whether all bytes are done, and only transfers are in progress.
  private var isRead: Bool {
    !transfers.isEmpty && progress.bytesToDo > 0 && progress.bytesDone >= progress.bytesToDo
  }

  private static func rate(_ speed: Double) -> String { "\(Sizes.text(UInt64(speed)))/s" }

  /// Bytes and files. Some work is not counted in bytes, and some has no known total.
  private var amounts: [String] {
    var amounts: [String] = []
    if progress.bytesToDo > 0 {
      amounts.append("\(Sizes.text(progress.bytesDone)) of \(Sizes.text(progress.bytesToDo))")
    } else if progress.filesToDo == 0, progress.bytesDone > 0 {
      amounts.append(Sizes.text(progress.bytesDone))
    }
    if progress.filesToDo > 0 || progress.bytesToDo > 0 {
      let toDo = Sizes.count(progress.filesToDo, progress.noun)
      amounts.append("\(Sizes.count(progress.filesDone)) of \(toDo)")
    } else if progress.filesDone > 0 {
      amounts.append(Sizes.count(progress.filesDone, progress.noun))
    }
    if progress.unchanged > 0 { amounts.append("\(Sizes.count(progress.unchanged)) unchanged") }
    return amounts
  }

  /// The seconds left at this speed, by bytes or by files, whichever takes longer.
  private var remaining: Double? {
    let bytes = Double(progress.bytesToDo) - Double(progress.bytesDone)
    let files = Double(progress.filesToDo) - Double(progress.filesDone)
    guard byteSpeed >= 1 || fileSpeed > 0, bytes > 0 || files > 0 else { return nil }
    var seconds = 0.0
    if bytes > 0, byteSpeed >= 1 { seconds = bytes / byteSpeed }
    if files > 0, fileSpeed > 0 { seconds = max(seconds, files / fileSpeed) }
    return seconds < 100 * 3600 ? seconds : nil
  }

  /// The whole line, of any length.
  var line: String {
    progress.active.isEmpty ? counts : "\(counts): \(progress.active)"
  }

  /// Returns the line cut to a number of columns: the path loses its beginning, the counts their
  /// end.
  func line(columns: Int) -> String {
    let counts = Self.fitted(counts, columns)
    let room = columns - Self.width(counts) - 2
    guard room >= 12, !progress.active.isEmpty else { return counts }
    let path = progress.active.description
    if Self.width(path) <= room { return "\(counts)  \(path)" }
    var end: [Character] = []
    var width = 2
    for character in path.reversed() {
      width += Self.width(String(character))
      if width > room { break }
      end.append(character)
    }
    return "\(counts)  …\(String(end.reversed()))"
  }

  private static func fitted(_ text: String, _ columns: Int) -> String {
    var width = 0
    return String(
      text.prefix { character in
        width += Self.width(String(character))
        return width <= columns
      })
  }

  /// Returns the maximum width of a text: two columns for each scalar that is not ASCII, because
  /// its width on the terminal is unknown.
  static func width(_ text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + ($1.isASCII ? 1 : 2) }
  }
}

extension ProgressCounters.State {
  /// Returns the state as a line of `--json --verbose`.
  func json(_ transfers: TransferCounts.State) -> JSON {
    var members: [JSON.Member] = [
      JSON.Member("event", "progress"),
      JSON.Member("files_done", .integer(Int64(filesDone))),
      JSON.Member("files_to_do", .integer(Int64(filesToDo))),
      JSON.Member("bytes_done", .integer(Int64(clamping: bytesDone))),
      JSON.Member("bytes_to_do", .integer(Int64(clamping: bytesToDo))),
      JSON.Member("problems", .integer(Int64(problems))),
    ]
    if unchanged > 0 { members.append(JSON.Member("unchanged", .integer(Int64(unchanged)))) }
    if !transfers.isEmpty {
      members += [
        JSON.Member("requests", .integer(Int64(transfers.requests))),
        JSON.Member("bytes_sent", .integer(Int64(clamping: transfers.sent))),
        JSON.Member("bytes_received", .integer(Int64(clamping: transfers.received))),
      ]
    }
    if !active.isEmpty { members += JSON.path(active, named: "in_hand") }
    return .object(members)
  }
}

extension TransferCounts.State {
  /// The bytes in both directions.
  fileprivate var bytes: UInt64 { sent &+ received }

  /// The bytes in each direction.
  fileprivate var amounts: String {
    "\(Sizes.text(sent)) sent, \(Sizes.text(received)) received"
  }

  /// The requests and the bytes in each direction, as `--verbose` reports them at the end.
  var text: String { "\(Sizes.count(requests, "request")), \(amounts)" }
}
