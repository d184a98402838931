internal import Lifecycle
internal import SystemIO

/// The user's crontab. Each schedule of this program is two lines: a comment with its name, and the
/// job. All other lines are preserved byte for byte.
struct Crontab {
  private(set) var lines: [ArraySlice<UInt8>]

  /// The comment before a job of this program, up to the name.
  private static let mark = "# sandboxctl schedule: "

  /// Reads the crontab. A missing one is empty.
  static func read() throws -> Crontab {
    let ending = try run(["crontab", "-l"])
    let said = String(decoding: ending.errors, as: UTF8.self)
    // All of Debian, cronie, busybox and BSD print one of these and exit with 1.
    let isAbsent = ending.code == 1 && (said.contains("no crontab") || said.contains("can't open"))
    guard ending.code == 0 || isAbsent else { throw failure("read", said) }
    return Crontab(ending.code == 0 ? ending.output : [])
  }

  init(_ text: [UInt8]) {
    lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    if lines.last?.isEmpty == true { lines.removeLast() }
  }

  /// The whole text. Each line ends with a newline, which cron requires of the last one.
  var bytes: [UInt8] { lines.flatMap { $0 + [UInt8(ascii: "\n")] } }

  /// The jobs of this program, by name.
  var jobs: [(name: String, line: String)] {
    lines.indices.dropLast().compactMap { index in
      Self.name(lines[index]).map { ($0, String(decoding: lines[index + 1], as: UTF8.self)) }
    }
  }

  private static func name(_ line: ArraySlice<UInt8>) -> String? {
    line.starts(with: mark.utf8)
      ? String(decoding: line.dropFirst(mark.utf8.count).prefix { $0 != 0x20 }, as: UTF8.self) : nil
  }

  /// Replaces the job of a name, or appends it.
  mutating func put(_ name: String, _ line: String) {
    let ours = [
      ArraySlice((Self.mark + name + " (schedule remove --cron removes it)").utf8),
      ArraySlice(line.utf8),
    ]
    if let index = lines.firstIndex(where: { Self.name($0) == name }) {
      lines.replaceSubrange(index..<min(index + 2, lines.count), with: ours)
    } else {
      lines += ours
    }
  }

  /// Removes a job. Returns false if there is none of that name.
  mutating func remove(_ name: String) -> Bool {
    guard let index = lines.firstIndex(where: { Self.name($0) == name }) else { return false }
    lines.removeSubrange(index..<min(index + 2, lines.count))
    return true
  }

  /// Installs the crontab, or removes it if it is empty.
  func write() throws {
    let ending = try Self.run(lines.isEmpty ? ["crontab", "-r"] : ["crontab", "-"], input: bytes)
    guard ending.code == 0 else {
      throw Self.failure("write", String(decoding: ending.errors, as: UTF8.self))
    }
  }

  private static func run(
    _ words: [ByteString], input: [UInt8] = []
  ) throws -> ChildProgram.Ending {
    do throws(SystemError) {
      return try ChildProgram.run(words, input: input)
    } catch {
      guard error.isMissing else { throw error }
      throw LifecycleError(
        .failed, "cannot use cron: the program 'crontab' is not installed",
        hint: "install cron, or use '--systemd'")
    }
  }

  private static func failure(_ verb: String, _ said: String) -> LifecycleError {
    let reason = said.split(separator: "\n").first.map(String.init) ?? "crontab failed"
    return LifecycleError(.failed, "cannot \(verb) the crontab: \(ByteString(reason))")
  }
}

extension ScheduledJob {
  /// Returns the job as a line of crontab(5), in which a bare % would end the command.
  func cronLine(host: String) throws -> String {
    var command = environment.map { "\($0.name)=\(ShellWord.text($0.value)) " }.joined()
    command += "nice -n 10 ionice -c 3 "
    command += ([program] + words + (isOnMainsOnly ? ["--when", "on-ac"] : []))
      .map(ShellWord.text).joined(separator: " ")
    if randomDelay > 0 { command = "sleep $(shuf -n 1 -i 0-\(randomDelay)); " + command }
    // One argument for a shell of its own, so that a comment or `exit` in it cannot affect the
    // line.
    if let onFailure { command += " || sh -c \(ShellWord.text(onFailure))" }
    guard !command.contains("\n"), !command.utf8.contains(0) else {
      throw UsageError("a crontab line cannot contain a newline", hint: "remove the newline")
    }
    try ShellSyntax.require(command, of: "the line of the crontab")
    let time = try (calendar ?? .hourly).cron(spreadBy: "\(host) \(name)")
    return time + " " + command.replacing("%", with: "\\%")
  }
}
