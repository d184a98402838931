internal import SystemIO

/// One entry of the sample's tree, with all that a listing shows of it.
struct ManifestEntry: Equatable, Sendable {
  /// What the entry is.
  enum Content: Equatable, Sendable {
    case folder
    case file([UInt8])
    /// A file with holes: its size, and what stands where.
    case sparse(size: UInt64, pieces: [Piece])
    /// A symbolic link.
    case link(ByteString)
    /// Another name of the file at this path of the same container.
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

    /// Left out of every backup, since iOS 5.1.
    static let notBackedUp = Mark(
      "user.com.apple.metadata:com_apple_backup_excludeItem", service)
    /// Left out of a backup to the cloud.
    static let notToCloud = Mark(
      "user.com.apple.metadata:com_apple_cloudBackup_excludeItem", service)
    /// Left out of a backup that is not encrypted.
    static let notUnencrypted = Mark(
      "user.com.apple.metadata:com_apple_unencryptedBackup_excludeItem", service)
    /// Left out of every backup, as iOS 5.0.1 marked it.
    static let oldStyle = Mark("user.com.apple.MobileBackup", [1])
  }

  var path: ByteString
  var content: Content
  var permissions: UInt16
  var modified: Timestamp
  var marks: [Mark]

  /// Makes an entry that was last changed on a day, counted from the day the sample is of.
  init(
    _ path: ByteString, _ content: Content, day: Int, permissions: UInt16, marks: [Mark] = []
  ) {
    self.path = path
    self.content = content
    self.permissions = permissions
    self.marks = marks
    modified = .sample(day: day, of: path)
  }

  /// The path of the directory that holds the entry; empty for one directly in the device's directory.
  var parent: ByteString { path.parent }

  /// The last component of the path.
  var name: ByteString { path.lastComponent ?? path }

  /// Bytes that the entry's size counts.
  var size: UInt64 {
    switch content {
    case .file(let bytes): UInt64(bytes.count)
    case .sparse(let size, _): size
    case .folder, .link, .hardLink: 0
    }
  }
}

extension ManifestEntry {
  /// A directory; its time is that of what it holds, where that is newer.
  static func directory(
    _ path: ByteString, permissions: UInt16 = 0o755, marks: [Mark] = []
  ) -> ManifestEntry {
    ManifestEntry(path, .folder, day: -200, permissions: permissions, marks: marks)
  }

  /// A file of these bytes.
  static func file(
    _ path: ByteString, _ bytes: [UInt8], day: Int, permissions: UInt16 = 0o644, marks: [Mark] = []
  ) -> ManifestEntry {
    ManifestEntry(path, .file(bytes), day: day, permissions: permissions, marks: marks)
  }

  /// A file of this text.
  static func text(
    _ path: ByteString, _ text: String, day: Int, permissions: UInt16 = 0o644, marks: [Mark] = []
  ) -> ManifestEntry {
    file(path, Array(text.utf8), day: day, permissions: permissions, marks: marks)
  }

  /// A file of about this much prose, another for each path.
  static func prose(
    _ path: ByteString, bytes: Int, day: Int, permissions: UInt16 = 0o644, marks: [Mark] = []
  ) -> ManifestEntry {
    let text = SampleText.text(path.description, bytes: bytes)
    return self.text(path, text, day: day, permissions: permissions, marks: marks)
  }

  /// A picture, another for each path; it has about three bytes a pixel.
  static func picture(
    _ path: ByteString, width: Int, height: Int, day: Int, marks: [Mark] = []
  ) -> ManifestEntry {
    let image = SampleImage(path.description, width: width, height: height)
    return file(path, image.file, day: day, marks: marks)
  }

  /// A file that no program can compress, behind `head`; other bytes for each path.
  static func noise(
    _ path: ByteString, head: [UInt8] = [], bytes: Int, day: Int, permissions: UInt16 = 0o644,
    marks: [Mark] = []
  ) -> ManifestEntry {
    var random = SampleRandom("noise " + path.description)
    let content = head + random.bytes(bytes)
    return file(path, content, day: day, permissions: permissions, marks: marks)
  }

  /// A symbolic link.
  static func link(_ path: ByteString, to target: ByteString, day: Int) -> ManifestEntry {
    ManifestEntry(path, .link(target), day: day, permissions: 0o777)
  }
}

extension Timestamp {
  /// Midnight at the beginning of the day that the sample is of: 2026-03-02, UTC.
  private static let firstDay: Int64 = 1_772_409_600

  /// A moment of a day, another for each path, with nanoseconds as platforms' own files have them.
  static func sample(day: Int, of path: ByteString) -> Timestamp {
    var random = SampleRandom("time " + path.description)
    let second = Int64(random.below(86_400))
    return Timestamp(
      seconds: firstDay + Int64(day) * 86_400 + second,
      nanoseconds: UInt32(random.below(1_000_000_000)))
  }

  /// The moment as property lists count it: seconds since 2001-01-01T00:00:00Z.
  var sinceReferenceDate: Double { Double(seconds - 978_307_200) }
}
