internal import SystemIO

/// Sizes in text output: K, M, G and KiB, MiB, GiB are 1024-based, kB, MB, GB 1000-based.
enum Sizes {
  /// Returns a size in the unit that leaves 1 to 1023 before the point: `1.2 GiB`, `312 MiB`, `17
  /// B`.
  static func text(_ bytes: UInt64) -> String { ByteCount.text(bytes) }

  /// Returns the size of files with their number: `3.1 GiB in 41,209 files`.
  static func text(_ bytes: UInt64, in files: Int) -> String {
    "\(text(bytes)) in \(count(files, "file"))"
  }

  /// Appends the text of a size.
  static func append(_ bytes: UInt64, to text: inout [UInt8]) { ByteCount.append(bytes, to: &text) }

  /// Returns a count with a comma between thousands: `41,209`.
  static func count(_ number: Int) -> String {
    let digits = Array(String(number.magnitude))
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
      text.append(digit)
    }
    return (number < 0 ? "-" : "") + text
  }

  /// Returns a count with its noun: `1 file`, `3 files`, `2 directories`, `2 keys`.
  static func count(_ number: Int, _ noun: String) -> String {
    guard number != 1 else { return "\(count(number)) \(noun)" }
    let isChanged =
      noun.hasSuffix("y") && !["ay", "ey", "oy", "uy"].contains { noun.hasSuffix($0) }
    return "\(count(number)) " + (isChanged ? noun.dropLast() + "ies" : noun + "s")
  }
}

/// Times and durations in text output.
enum Times {
  /// Returns a time in the local time zone: `2026-11-01 10:30`.
  static func text(_ time: Timestamp) -> String {
    var bytes: [UInt8] = []
    append(time, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends the text of a time, optionally with seconds.
  static func append(_ time: Timestamp, seconds: Bool = false, to bytes: inout [UInt8]) {
    guard let local = time.local else {
      bytes.append(contentsOf: "\(time.seconds) s since 1970".utf8)
      return
    }
    if (1000...9999).contains(local.year) {
      appendTwo(local.year / 100, to: &bytes)
      appendTwo(local.year % 100, to: &bytes)
    } else {
      bytes.append(contentsOf: "\(local.year)".utf8)
    }
    for (separator, number) in [("-", local.month), ("-", local.day), (" ", local.hour)]
      as [(Unicode.Scalar, Int)]
    {
      bytes.append(UInt8(ascii: separator))
      appendTwo(number, to: &bytes)
    }
    bytes.append(UInt8(ascii: ":"))
    appendTwo(local.minute, to: &bytes)
    if !seconds { return }
    bytes.append(UInt8(ascii: ":"))
    appendTwo(local.second, to: &bytes)
  }

  private static func appendTwo(_ number: Int, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10))
    bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
  }

  /// Returns the age of a time: `3 h ago`; for a later time `in the future`.
  static func ago(_ time: Timestamp, now: Timestamp = Host.now()) -> String {
    let seconds = Int(now.since(time))
    switch seconds {
    case ..<(-60): return "in the future"
    case ..<60: return "just now"
    case ..<3600: return "\(seconds / 60) min ago"
    case ..<86_400: return "\(seconds / 3600) h ago"
    default: return Sizes.count(seconds / 86_400, "day") + " ago"
    }
  }

  /// Returns a duration: `0.4 s`, `24 s`, `3 min 20 s`, `2 h 5 min`.
  static func duration(_ seconds: Double) -> String {
    if seconds < 0.1 { return "under 0.1 s" }
    if seconds < 9.95 {
      let tenths = Int((seconds * 10).rounded())
      return "\(tenths / 10).\(tenths % 10) s"
    }
    let whole = Int(seconds.rounded())
    if whole < 60 { return "\(whole) s" }
    if whole < 3600 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3600) h \(whole % 3600 / 60) min"
  }
}

/// Paths in text output.
enum Paths {
  /// Returns a path with `~` for the user's home.
  static func text(_ path: ByteString) -> String {
    guard let home = Host.environment("HOME"), home.isAbsolute, home.count > 1 else {
      return path.description
    }
    let homes = [home, try? Host.realPath(home)].compactMap { $0 }
    guard let home = homes.first(where: { path.isWithin($0) }) else { return path.description }
    return "~\(ByteString(path.bytes.dropFirst(home.count)))"
  }

  /// Returns the mount point of a path's volume.
  static func volume(of path: ByteString) -> String { text(Host.mountPoint(of: path)) }
}

extension ByteString {
  /// Joins components with slashes.
  init(joining components: some Sequence<ByteString>) {
    self.init(components.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }

  /// Whether the path begins with `.` or `..`.
  var beginsWithDots: Bool { components.first.map { $0 == "." || $0 == ".." } ?? false }

  /// The path, relative to the working directory if it is not absolute, without `.` and `..`,
  /// resolved lexically: it need not exist. Nil for a relative path without a working directory.
  var absolute: ByteString? {
    guard let path = isAbsolute ? self : Host.workingDirectory()?.appending(self) else {
      return nil
    }
    var parts: [ByteString] = []
    for part in path.components where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return ByteString("/").appending(ByteString(joining: parts))
  }
}

extension String {
  /// The text without the middle of very long words, such as paths near PATH_MAX (4,096 bytes). The
  /// result fits on a few lines and shows both ends.
  var abbreviated: String {
    guard utf8.count > Self.longestWord else { return self }
    return split(separator: " ", omittingEmptySubsequences: false).map { word in
      guard word.count > Self.longestWord else { return String(word) }
      return word.prefix(Self.longestWord / 2) + "…" + word.suffix(Self.longestWord / 2)
    }.joined(separator: " ")
  }

  /// The number of characters up to which a word is shown completely.
  private static let longestWord = 400

  /// The text with control characters escaped, for texts from a repository, which is not trusted.
  var shown: String { ByteString(self).description }
}
