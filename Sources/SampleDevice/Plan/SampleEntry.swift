internal import SystemIO

/// An entry of the sample's tree with all its metadata.
struct SampleEntry: Equatable, Sendable {
  /// The kind and content of the entry.
  enum Content: Equatable, Sendable {
    case directory
    case file([UInt8])
    /// A sparse file: its size and its data.
    case sparse(size: UInt64, pieces: [Piece])
    /// A symbolic link.
    case link(ByteString)
    /// A hard link to the file at this path of the same container.
    case hardLink(ByteString)
  }

  /// Bytes at an offset.
  struct Piece: Equatable, Sendable {
    let offset: UInt64
    let bytes: [UInt8]
  }

  /// An extended attribute.
  struct Mark: Equatable, Sendable {
    let name: ByteString
    let value: [UInt8]

    private init(_ name: ByteString, _ value: [UInt8]) {
      self.name = name
      self.value = value
    }

    private static let service = Array("com.apple.backupd".utf8)

    /// Excluded from every backup, since iOS 5.1.
    static let notBackedUp = Mark(
      "user.com.apple.metadata:com_apple_backup_excludeItem", service)
    /// Excluded from cloud backups.
    static let notToCloud = Mark(
      "user.com.apple.metadata:com_apple_cloudBackup_excludeItem", service)
    /// Excluded from unencrypted backups.
    static let notUnencrypted = Mark(
      "user.com.apple.metadata:com_apple_unencryptedBackup_excludeItem", service)
    /// Excluded from every backup, in the format of iOS 5.0.1.
    static let oldStyle = Mark("user.com.apple.MobileBackup", [1])
  }

  var path: ByteString
  var content: Content
  var permissions: UInt16
  var modified: Timestamp
  var marks: [Mark]

  /// Creates an entry that was last changed on a day, relative to the sample's day 0.
  init(
    _ path: ByteString, _ content: Content, day: Int, permissions: UInt16, marks: [Mark] = []
  ) {
    self.path = path
    self.content = content
    self.permissions = permissions
    self.marks = marks
    modified = .sample(day: day, of: path)
  }

  /// The path of the entry's directory; empty for an entry directly in the device's directory.
  var parent: ByteString { path.parent }

  /// The last component of the path.
  var name: ByteString { path.lastComponent ?? path }

  /// The size of the entry in bytes.
  var size: UInt64 {
    switch content {
    case .file(let bytes): UInt64(bytes.count)
    case .sparse(let size, _): size
    case .directory, .link, .hardLink: 0
    }
  }
}

extension SampleEntry {
  /// Returns a directory, whose time is that of its newest entry if that is newer.
  static func directory(
    _ path: ByteString, permissions: UInt16 = 0o755, marks: [Mark] = []
  ) -> SampleEntry {
    SampleEntry(path, .directory, day: -200, permissions: permissions, marks: marks)
  }

  /// Returns a file with these bytes.
  static func file(
    _ path: ByteString, _ bytes: [UInt8], day: Int, permissions: UInt16 = 0o644, marks: [Mark] = []
  ) -> SampleEntry {
    SampleEntry(path, .file(bytes), day: day, permissions: permissions, marks: marks)
  }

  /// Returns a file with this text.
  static func text(
    _ path: ByteString, _ text: String, day: Int, permissions: UInt16 = 0o644, marks: [Mark] = []
  ) -> SampleEntry {
    file(path, Array(text.utf8), day: day, permissions: permissions, marks: marks)
  }

  /// Returns a file with about `bytes` bytes of prose, different for each path.
  static func prose(
    _ path: ByteString, bytes: Int, day: Int, permissions: UInt16 = 0o644, marks: [Mark] = []
  ) -> SampleEntry {
    let text = SampleText.text(path.description, bytes: bytes)
    return self.text(path, text, day: day, permissions: permissions, marks: marks)
  }

  /// Returns a picture with about three bytes a pixel, different for each path.
  static func picture(
    _ path: ByteString, width: Int, height: Int, day: Int, marks: [Mark] = []
  ) -> SampleEntry {
    let image = SampleImage(path.description, width: width, height: height)
    return file(path, image.file, day: day, marks: marks)
  }

  /// Returns a file of incompressible bytes after `head`, different for each path.
  static func noise(
    _ path: ByteString, head: [UInt8] = [], bytes: Int, day: Int, permissions: UInt16 = 0o644,
    marks: [Mark] = []
  ) -> SampleEntry {
    var random = SampleRandom("noise " + path.description)
    let content = head + random.bytes(bytes)
    return file(path, content, day: day, permissions: permissions, marks: marks)
  }

  /// Returns a symbolic link.
  static func link(_ path: ByteString, to target: ByteString, day: Int) -> SampleEntry {
    SampleEntry(path, .link(target), day: day, permissions: 0o777)
  }
}

extension Timestamp {
  /// Midnight at the beginning of day 0: 2026-03-02, UTC.
  private static let firstDay: Int64 = 1_772_409_600

  /// Returns a time on a day, different for each path, with nanoseconds as in real files.
  static func sample(day: Int, of path: ByteString) -> Timestamp {
    var random = SampleRandom("time " + path.description)
    let second = Int64(random.below(86_400))
    return Timestamp(
      seconds: firstDay + Int64(day) * 86_400 + second,
      nanoseconds: UInt32(random.below(1_000_000_000)))
  }

  /// The time in property lists: seconds since 2001-01-01T00:00:00Z.
  var sinceReferenceDate: Double { Double(seconds - 978_307_200) }
}
