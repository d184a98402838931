public import SystemIO

/// Something odd that was met while looking at a device: where, and why it matters.
public struct Finding: Hashable, Sendable {
  public let severity: Severity
  public let code: Code
  /// Where, relative to the device's root; absolute for what lies outside it.
  public let path: ByteString
  /// What is odd, as a sentence without its first word being the path.
  public let reason: String

  /// How much it matters.
  public enum Severity: String, Hashable, Sendable {
    /// Said, because it may surprise.
    case note
    /// Something is damaged, missing or not as the platform makes it.
    case warning
  }

  /// What kind of oddity it is, for those who count or filter.
  public enum Code: String, Hashable, Sendable, CaseIterable {
    /// A link stood for a directory of the layout or a container's root, and was followed.
    case linkFollowed = "link-followed"
    /// A directory of the layout or a container's root is on another file system, and was entered.
    case mountEntered = "mount-entered"
    /// A link of another user, which root does not follow.
    case foreignLink = "foreign-link"
    /// A link leads nowhere.
    case danglingLink = "dangling-link"
    /// A link leads to a directory that holds the device, or to one that is a container already.
    case repeatedDirectory = "repeated-folder"
    /// A directory could not be read.
    case unreadable
    /// A file that says whose container it is, or what the app is, could not be used.
    case unusableFile = "unusable-file"
    /// A value in such a file is missing or of another type than it should be.
    case wrongValue = "wrong-value"
    /// An identifier that cannot be one, as it would lead somewhere as a path.
    case unusableName = "unusable-name"
    /// The metadata says another thing than the bundle, or than the place.
    case contradiction
    /// Two containers claim to be the same one of the same app.
    case claimedTwice = "claimed-twice"
    /// Nothing tells whose container it is.
    case unidentified
    /// Something lies where only containers should.
    case stray
    /// Something of the user's that nothing says how to keep, and that no backup holds.
    case excluded = "left-out"
    /// The directory is a device of another layout, too.
    case anotherLayout = "another-layout"
    /// A bundle's container holds no bundle, or several.
    case noSingleBundle = "no-single-bundle"
    /// The device has something that is not read.
    case unsupported
    /// A program is encrypted for the device that it was bought for.
    case encrypted
  }

  /// Makes a finding.
  public init(_ severity: Severity, _ code: Code, _ path: ByteString, _ reason: String) {
    self.severity = severity
    self.code = code
    self.path = path
    self.reason = reason
  }
}

extension Finding: Comparable {
  public static func < (left: Self, right: Self) -> Bool {
    (left.path, left.code.rawValue, left.reason) < (right.path, right.code.rawValue, right.reason)
  }
}

extension Finding: CustomStringConvertible {
  /// The sentence: "warning: 'data/…/Info.plist': it is empty".
  public var description: String { "\(severity.rawValue): '\(path)': \(reason)" }
}
