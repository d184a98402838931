internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The progress of an operation in words: the amounts done and to do, the speed, the time left,
/// errors, and the current file.
struct ProgressText {
  private(set) var progress = ProgressCounters.State()
  /// Bytes and files per second, averaged over about ten seconds.
  private var byteSpeed = 0.0
  private var fileSpeed = 0.0
  private var last: Double?

  /// The period of the average, in seconds.
  private static let memory = 10.0

  /// Records the state at a time, in seconds.
  mutating func update(_ now: ProgressCounters.State, at time: Double) {
    defer {
      progress = now
      last = time
    }
    guard let last, time > last else { return }
    let seconds = time - last
    let share = byteSpeed == 0 && fileSpeed == 0 ? 1 : min(1, seconds / Self.memory)
    let bytes = Double(now.bytesDone) - Double(progress.bytesDone)
    let files = Double(now.filesDone) - Double(progress.filesDone)
    byteSpeed += (max(0, bytes) / seconds - byteSpeed) * share
    fileSpeed += (max(0, files) / seconds - fileSpeed) * share
  }

  /// The text without the current file.
  var counts: String {
    var parts = amounts
    if parts.isEmpty { return "scanning" }
    if byteSpeed >= 1 { parts.append("\(Sizes.text(UInt64(byteSpeed)))/s") }
    if let remaining { parts.append("\(Times.duration(remaining)) left") }
    if progress.problems > 0 { parts.append(Sizes.count(progress.problems, "error")) }
    return parts.joined(separator: ", ")
  }

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

  /// Returns the maximum width of a text: two columns for each scalar that is not ASCII, since its
  /// width on the terminal is unknown.
  static func width(_ text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + ($1.isASCII ? 1 : 2) }
  }
}

extension ProgressCounters.State {
  /// The state as a line of `--json --verbose`.
  var json: JSON {
    var members: [JSON.Member] = [
      JSON.Member("event", "progress"),
      JSON.Member("files_done", .integer(Int64(filesDone))),
      JSON.Member("files_to_do", .integer(Int64(filesToDo))),
      JSON.Member("bytes_done", .integer(Int64(clamping: bytesDone))),
      JSON.Member("bytes_to_do", .integer(Int64(clamping: bytesToDo))),
      JSON.Member("problems", .integer(Int64(problems))),
    ]
    if !active.isEmpty { members += JSON.path(active, named: "in_hand") }
    return .object(members)
  }
}
