public import SystemIO

/// An unexpected observation while reading a device.
public struct Finding: Hashable, Sendable {
  public let severity: Severity
  public let code: Code
  /// The path relative to the device's root, or absolute if it is outside the root.
  public let path: ByteString
  /// The description, a sentence about the path without its subject.
  public let reason: String

  /// The severity of a finding.
  public enum Severity: String, Hashable, Sendable {
    /// Information that the user may not expect.
    case note
    /// Something is damaged, missing or unlike what the platform creates.
    case warning
  }

  /// The kind of finding, for counting and filtering.
  public enum Code: String, Hashable, Sendable, CaseIterable {
    /// A link in place of a directory of the layout or a container's root was followed.
    case linkFollowed = "link-followed"
    /// A directory of the layout or a container's root is on another file system and was entered.
    case mountEntered = "mount-entered"
    /// A link of another user, which root does not follow.
    case foreignLink = "foreign-link"
    /// A link whose target does not exist.
    case danglingLink = "dangling-link"
    /// A link to a directory that contains the device, or a second path to the same container.
    case repeatedDirectory = "repeated-folder"
    /// A directory could not be read.
    case unreadable
    /// A file that identifies a container or describes an app is not usable.
    case unusableFile = "unusable-file"
    /// A value in such a file is missing or has the wrong type.
    case wrongValue = "wrong-value"
    /// An invalid identifier, for example one that would lead elsewhere as a path.
    case unusableName = "unusable-name"
    /// The metadata contradicts the bundle or the location.
    case contradiction
    /// Two containers have the same kind and identifier.
    case claimedTwice = "claimed-twice"
    /// The container is not identified.
    case unidentified
    /// An entry that is not a container in a directory of containers.
    case orphan
    /// User data that belongs to no container and is not backed up.
    case excluded = "left-out"
    /// The directory also has another layout.
    case anotherLayout = "another-layout"
    /// A bundle container contains no bundle, or several.
    case noSingleBundle = "no-single-bundle"
    /// The device contains data that is not supported.
    case unsupported
    /// An executable is encrypted for the device of its buyer.
    case encrypted
  }

  /// Creates a finding.
  public init(_ severity: Severity, _ code: Code, at path: ByteString, reason: String) {
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
  /// The message: "warning: 'data/…/Info.plist': it is empty".
  public var description: String { "\(severity.rawValue): '\(path)': \(reason)" }
}
