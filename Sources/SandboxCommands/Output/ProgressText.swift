internal import ArchiveStore
internal import SystemIO

/// How far an operation is, in words: what is done and to do, the speed, the time that is left, what
/// went wrong, the file in hand.
struct ProgressText {
  private(set) var progress = ProgressState()
  /// Bytes and files in a second, over about the last ten seconds.
  private var byteSpeed = 0.0
  private var fileSpeed = 0.0
  private var last: Double?

  /// Over how many seconds the speed is taken.
  private static let memory = 10.0

  /// Takes how far it is at a moment of a clock that counts seconds.
  mutating func take(_ now: ProgressState, at time: Double) {
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

  /// All of it but the file in hand.
  var counts: String {
    var parts = amounts
    if parts.isEmpty { return "looking at what there is" }
    if byteSpeed >= 1 { parts.append("\(Sizes.text(UInt64(byteSpeed)))/s") }
    if let left { parts.append("\(Times.duration(left)) left") }
    if progress.problems > 0 { parts.append(Sizes.count(progress.problems, "error")) }
    return parts.joined(separator: ", ")
  }

  /// Bytes and files: some work is not counted by bytes, and of some it is not known how much there is
  /// to do.
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

  /// Seconds that are left at this speed, by bytes and by files: what takes longer.
  private var left: Double? {
    let bytes = Double(progress.bytesToDo) - Double(progress.bytesDone)
    let files = Double(progress.filesToDo) - Double(progress.filesDone)
    guard byteSpeed >= 1 || fileSpeed > 0, bytes > 0 || files > 0 else { return nil }
    var seconds = 0.0
    if bytes > 0, byteSpeed >= 1 { seconds = bytes / byteSpeed }
    if files > 0, fileSpeed > 0 { seconds = max(seconds, files / fileSpeed) }
    return seconds < 100 * 3600 ? seconds : nil
  }

  /// The whole line, however long.
  var line: String {
    progress.active.isEmpty ? counts : "\(counts): \(progress.active)"
  }

  /// The line in so many columns: the path loses its beginning, the counts their end.
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

  /// Columns that a text takes at most: two for each scalar that is not ASCII, since how wide a
  /// terminal shows it cannot be known.
  static func width(_ text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + ($1.isASCII ? 1 : 2) }
  }
}
