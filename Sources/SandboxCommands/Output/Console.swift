internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// Where a command's words go: results to standard output, talk to standard error.
///
/// Errors of standard output end the command by a throw; those of standard error are ignored, since
/// there is nowhere left to tell of them.
final class Console {
  /// Whether notes, warnings and failures are JSON, as the results are: an object a line.
  var isJSON = false
  /// Whether something damaged was passed over.
  private(set) var hasSkipped = false
  private let output = StandardStream.output()
  private let errors = StandardStream.errors()
  /// What went wrong with standard output while something was said.
  private var outputError: SystemError?
  /// How far the reading is from which the results come, until all of them are out.
  private var display: ProgressDisplay?
  /// Whether results go to the screen on which that is drawn: then each goes there at once.
  private var sharesScreen = false

  /// Writes a line of the result.
  func result(_ line: String) throws {
    try output.write(line + "\n")
    if sharesScreen { try putOut() }
  }

  /// Writes bytes of the result as they are: whole lines, where they share the screen.
  func result(bytes: Span<UInt8>) throws {
    try output.write(bytes)
    if sharesScreen { try putOut() }
  }

  private func putOut() throws(SystemError) {
    DrawnLine.past { flushOutput() }
    try throwOutputError()
  }

  private func throwOutputError() throws(SystemError) {
    guard let error = outputError else { return }
    outputError = nil
    throw error
  }

  private func flushOutput() {
    do throws(SystemError) { try output.flush() } catch { outputError = outputError ?? error }
  }

  /// Whether the result goes to a person's screen.
  var isTerminal: Bool { output.isTerminal }

  /// Whether the result goes to a file.
  var goesToFile: Bool { output.isFile }

  /// Shows how far a reading is, until `end()`.
  func show(_ watch: ReadingWatch, _ manner: ProgressDisplay.Manner) throws {
    sharesScreen = manner == .line && isTerminal
    display = try ProgressDisplay(
      watch.counters, manner, lastLine: text(Failure(watch.interruption)))
  }

  /// Ends what is shown.
  func end() { display?.end() }

  /// Writes one JSON value as a line of the result.
  func result(_ json: JSON) throws { try result(json.compact) }

  /// Says something that is not the result.
  func note(_ text: String) { say(text, as: "note", after: "note: ") }

  /// Says that something is amiss with which the work went on.
  func warning(_ text: String) { say(text, as: "warning", after: "sandboxctl: warning: ") }

  /// Says what of a repository is amiss with which the work went on, and what to do about it.
  func warn(of remarks: [StoreError]) {
    for remark in remarks { warning(remark.description) }
    if let hint = remarks.lazy.compactMap(\.hint).first { self.hint(hint) }
  }

  /// Says that something damaged was passed over: older data may stand for what was meant, so the
  /// exit status has to tell of it, whatever the command finds.
  func skipped(_ what: String) {
    hasSkipped = true
    warning("passed over: \(what)")
  }

  /// Says what can be done about what was said.
  func hint(_ text: String) { say(text, as: "note", after: "sandboxctl: hint: ") }

  private func say(_ text: String, as name: String, after prefix: String) {
    let line =
      isJSON ? JSON.object([JSON.Member(name, .string(text))]).compact : prefix + text.abbreviated
    say(line + "\n")
  }

  /// Whether somebody can be asked: at a terminal, by a program that talks to people.
  var canAsk: Bool { !isJSON && errors.isTerminal && StandardStream.isInputTerminal }

  /// Asks a question that is answered by yes or no; anything but yes is no.
  func ask(_ question: String) throws -> Bool {
    try output.flush()
    try errors.write(question + " [y/N] ")
    try errors.flush()
    let line = try StandardStream.readLine(limit: 80)
    let answer = line.map { String(decoding: $0, as: UTF8.self).lowercased() } ?? ""
    return ["y", "yes"].contains(answer.filter { !$0.isWhitespace })
  }

  /// Tells of a failure.
  func failure(_ failure: Failure) {
    say(text(failure) + "\n")
  }

  private func text(_ failure: Failure) -> String {
    if isJSON { return failure.json.compact }
    let hint = failure.hint.map { "\nsandboxctl: hint: \($0)" }
    return "sandboxctl: error: \(failure.message.abbreviated)" + (hint ?? "")
  }

  /// Says something after all results before it, so that a person who sees both reads them in the
  /// order in which they came.
  private func say(_ text: String) {
    flushOutput()
    DrawnLine.past {
      try? errors.write(text)
      try? errors.flush()
    }
  }

  /// Writes what has gathered.
  func flush() throws {
    try throwOutputError()
    try output.flush()
    try errors.flush()
  }
}
