internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import RemoteStorage
internal import SystemIO

/// The output of a command: results on standard output, messages on standard error.
///
/// An error of standard output is thrown. An error of standard error is ignored, since it cannot be
/// reported.
final class Console {
  /// The root command of the program, for commands that check a command line or a configuration.
  let root: any ParsableCommand.Type
  /// Whether notes, warnings and failures are printed as JSON, like the results: one object per
  /// line.
  var isJSON = false
  /// The long names of the options that the command line gives, without those of a configuration.
  var givenOptions: Set<String> = []
  /// The commands that messages suggest for the repository that the command has opened.
  var suggested = SuggestedCommands()
  /// The options that suggested commands need to use the repository that the command has opened.
  var repositorySuffix: String { suggested.suffix }
  /// The option of the command that lists everything.
  var listOption = ListExcerpt<String>.option
  /// The status for the objects that were skipped: `damaged`, `doneInPart` if this user merely may
  /// not read them, or `done`.
  private(set) var skippedStatus = ExitStatus.done
  private let output = StandardStream.output()
  private let errors = StandardStream.errors()
  /// An error of standard output that occurred while a message was printed.
  private var outputError: SystemError?
  /// The progress display of the read that produces the results.
  private var display: ProgressDisplay?
  /// Whether the results and the progress line share a terminal. Each result is then written at
  /// once.
  private var sharesScreen = false

  init(root: any ParsableCommand.Type) { self.root = root }

  /// Writes a line of the result.
  func result(_ line: String) throws {
    try output.write(line + "\n")
    if sharesScreen { try flushResult() }
  }

  /// Writes bytes of the result; whole lines if they share a terminal with the progress line.
  func result(bytes: Span<UInt8>) throws {
    try output.write(bytes)
    if sharesScreen { try flushResult() }
  }

  private func flushResult() throws(SystemError) {
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

  /// Whether the results go to a terminal.
  var isTerminal: Bool { output.isTerminal }

  /// Whether the results go to a regular file.
  var goesToFile: Bool { output.isFile }

  /// Shows the progress of a read until `end()`.
  func show(_ watch: ReadingWatch, _ manner: ProgressDisplay.Manner) throws {
    sharesScreen = manner == .line && isTerminal
    display = try ProgressDisplay(
      watch.counters, manner, isJSON: isJSON,
      abandonment: ProgressDisplay.Abandonment(
        lastLine: text(Failure(watch.interruption)), release: watch.abandon))
  }

  /// Ends the progress display.
  func end() { display?.end() }

  /// Writes one JSON value as a line of the result.
  func result(_ json: JSON) throws { try result(json.compact) }

  /// Writes one JSON object as a line of the result, piece by piece.
  func result(_ object: JSONStream) throws {
    try object.write { try output.write($0.span) }
    try result("")
  }

  /// Writes a table, and a line about the omitted rows, if there are any.
  ///
  /// - Parameter indent: the blanks before each line.
  func result(_ table: Table, remainder: String? = nil, indent: String = "") throws {
    for line in table.lines { try result(indent + line) }
    if let remainder { try result(indent + remainder) }
  }

  /// Writes paths, each on a line after a word: all, or the first ones and a count of the others.
  func list(_ word: String, _ paths: some Collection<ByteString>, all: Bool) throws {
    try list(ListExcerpt(paths, all: all), after: word, line: \.description)
  }

  /// Writes a line for each element of an excerpt, and one about the others, each after a word.
  func list<Element>(
    _ excerpt: ListExcerpt<Element>, after word: String = "", line: (Element) -> String
  ) throws {
    for element in excerpt.shown { try result(word + line(element)) }
    if let remainder = excerpt.remainder(naming: listOption) { try result(word + remainder) }
  }

  /// A message of a kind with the words before its subject.
  enum Message {
    case note(String)
    case warning(String)
  }

  /// Prints remarks on paths as messages: all, or the first ones and a count of the others. With
  /// `isJSON` all.
  func remarks(
    _ remarks: some Collection<PathRemark>, as message: Message, all: Bool,
    text: (PathRemark) -> String = { "\($0.path): \($0.remark)" }
  ) {
    list(remarks, as: message, all: all, text: text)
  }

  /// Prints a list as messages in the same way.
  func list<Element>(
    _ elements: some Collection<Element>, as message: Message, all: Bool, text: (Element) -> String
  ) {
    let excerpt = ListExcerpt(elements, all: all || isJSON)
    for line in excerpt.shown.map(text) + [excerpt.remainder(naming: listOption)].compactMap(\.self)
    {
      switch message {
      case .note(let words): note(words + line)
      case .warning(let words): warning(words + line)
      }
    }
  }

  /// Prints a message that is not a result.
  func note(_ text: String) { write(text, as: "note", after: "note: ") }

  /// Prints a warning about a problem that did not end the work.
  func warning(_ text: String) { write(text, as: "warning", after: "sandboxctl: warning: ") }

  /// Prints warnings about problems of a repository, and a hint.
  func warn(of remarks: [StoreError]) {
    for remark in remarks { warning(remark.description) }
    if let hint = remarks.lazy.compactMap(\.hint).first { self.hint(hint) }
  }

  /// Prints warnings about objects without which a command continued, and the remedy for those that
  /// this user may not read; returns the status.
  func warn(skipping errors: some Collection<StoreError>) -> ExitStatus {
    for error in errors { warning(error.description) }
    if let hint = errors.lazy.filter(\.isRefused).compactMap(\.hint).first { self.hint(hint) }
    return ExitStatus(without: errors)
  }

  /// Prints that a damaged object, or one that this user may not read, was skipped. The result may
  /// contain older data in its place, so the exit status reports that regardless of the result.
  func skipped(_ what: String, because error: StoreError) {
    skippedStatus = .together([skippedStatus, ExitStatus(without: [error])])
    warning("skipped: \(what)")
    if error.isRefused, let hint = error.hint { self.hint(hint) }
  }

  /// Prints a hint about the previous message.
  func hint(_ text: String) { write(text, as: "note", after: "sandboxctl: hint: ") }

  private func write(_ text: String, as name: String, after prefix: String) {
    let complete = suggested.complete(text)
    write(Self.line(complete, as: name, after: prefix, isJSON: isJSON) + "\n")
  }

  /// Returns a line about the progress for standard error.
  static func line(ofProgress text: String, isJSON: Bool) -> String {
    line(text, as: "note", after: "sandboxctl: ", isJSON: isJSON)
  }

  private static func line(
    _ text: String, as name: String, after prefix: String, isJSON: Bool
  ) -> String {
    isJSON ? JSON.object([JSON.Member(name, .string(text))]).compact : prefix + text.abbreviated
  }

  /// Prints a warning when a repository on another host has been unreachable for some time, and a
  /// note when it is reachable again. Both appear while the command waits, on any thread.
  func showOutages() {
    OutageWatch.onEvent { [isJSON] event in
      let line =
        switch event.kind {
        case .began(let reason):
          Self.line(
            "waiting for '\(event.location)': \(reason)", as: "warning",
            after: "sandboxctl: warning: ", isJSON: isJSON)
        case .ended(let seconds):
          Self.line(
            "'\(event.location)' answers again, after \(Times.duration(seconds))", as: "note",
            after: "note: ", isJSON: isJSON)
        }
      DrawnLine.write(line)
    }
  }

  /// Whether the user can be asked: at a terminal, without JSON output.
  var canAsk: Bool { !isJSON && errors.isTerminal && StandardStream.isInputTerminal }

  /// Asks a question and returns whether the answer is yes.
  func confirm(_ question: String) throws -> Bool {
    try answer(question, isYesUsual: false) ?? false
  }

  /// Asks a question and returns whether the answer is yes, or nil at the end of the input. With
  /// `isYesUsual` an empty line is yes.
  func answer(_ question: String, isYesUsual: Bool) throws -> Bool? {
    try output.flush()
    try errors.write(question + (isYesUsual ? " [Y/n] " : " [y/N] "))
    try errors.flush()
    guard let line = try StandardStream.readLine(limit: 80) else { return nil }
    let answer = String(decoding: line, as: UTF8.self).lowercased().filter { !$0.isWhitespace }
    return answer.isEmpty ? isYesUsual : ["y", "yes"].contains(answer)
  }

  /// Prints a failure.
  func failure(_ failure: Failure) {
    write(text(failure) + "\n")
  }

  private func text(_ failure: Failure) -> String {
    let failure = failure.suggesting(suggested)
    if isJSON { return failure.json.compact }
    let hint = failure.hint.map { "\nsandboxctl: hint: \($0)" }
    return "sandboxctl: error: \(failure.message.abbreviated)" + (hint ?? "")
  }

  /// Prints a message after all results before it, to keep their order on a terminal.
  private func write(_ text: String) {
    flushOutput()
    DrawnLine.past {
      try? errors.write(text)
      try? errors.flush()
    }
  }

  /// Writes the buffered output.
  func flush() throws {
    try throwOutputError()
    try output.flush()
    try errors.flush()
  }
}
