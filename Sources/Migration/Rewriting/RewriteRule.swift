package import SystemIO

/// A rule that replaces paths of an app's old place in one kind of configuration file.
package enum RewriteRule: String, CaseIterable, Sendable, Hashable {
  /// Mozilla's `profiles.ini`: the profiles with absolute paths, and the profile of each
  /// installation. Source: Firefox Source Docs, Profiles Service (nsToolkitProfileService).
  case mozillaProfiles = "mozilla-profiles"
  /// Mozilla's `installs.ini`: the profile of each installation.
  case mozillaInstalls = "mozilla-installs"
  /// Mozilla's `extensions.json`: the files of add-ons. Source: Firefox Source Docs, Add-on Manager
  /// (XPIDatabase).
  case mozillaExtensions = "mozilla-extensions"
  /// Chromium's `Preferences`: the directories for downloads and dialogs, and unpacked extensions.
  /// Source: chrome/common/pref_names.h and extensions/browser/pref_names.cc.
  case chromiumPreferences = "chromium-preferences"

  /// The names of the files.
  package var fileNames: [ByteString] {
    switch self {
    case .mozillaProfiles: ["profiles.ini"]
    case .mozillaInstalls: ["installs.ini"]
    case .mozillaExtensions: ["extensions.json"]
    case .chromiumPreferences: ["Preferences", "Secure Preferences"]
    }
  }

  /// Whether the rule is for the file at a path.
  package func isFor(_ path: ByteString) -> Bool {
    path.lastComponent.map(fileNames.contains) ?? false
  }

  /// The maximum size of a file, in bytes. Larger ones are refused.
  package var maximumSize: Int {
    switch self {
    case .mozillaProfiles, .mozillaInstalls: 1 << 20
    case .mozillaExtensions, .chromiumPreferences: 16 << 20
    }
  }

  /// Replaces the paths in a file's content.
  ///
  /// Only the values that the rule knows are changed; all other bytes remain. A file that cannot be
  /// read unambiguously is refused, so that it can be reported.
  ///
  /// - Throws: `RewriteRefusal` for a file that is too large or not in the expected format.
  package func rewrite(
    _ bytes: [UInt8], by mapping: PathMapping
  ) throws(RewriteRefusal) -> Rewriting {
    guard bytes.count <= maximumSize else {
      throw RewriteRefusal(reason: "it has more than \(maximumSize) bytes")
    }
    switch self {
    case .mozillaProfiles, .mozillaInstalls:
      return try ProfileListEditor(bytes, rule: self, mapping).rewriting()
    case .mozillaExtensions, .chromiumPreferences:
      return try JSONPathEditor(bytes, keys: keys, mapping).rewriting()
    }
  }

  /// The keys of a JSON file whose values are paths or URLs of files; nil stands for any key or
  /// index.
  private var keys: [[String?]] {
    switch self {
    case .mozillaExtensions:
      ["path", "rootURI", "sourceURI"].map { ["addons", nil, $0] }
    case .chromiumPreferences:
      [
        ["download", "default_directory"], ["savefile", "default_directory"],
        ["selectfile", "last_directory"], ["extensions", "settings", nil, "path"],
      ]
    default: []
    }
  }
}

/// The content of a configuration file after its paths were replaced.
package struct Rewriting: Sendable, Hashable {
  /// The new content, equal to the old one if `changes` is empty.
  package let bytes: [UInt8]
  /// The replaced values, in the order of the file.
  package let changes: [Change]
  /// The paths that point neither to an old place nor to the system's programs, in the order of the
  /// file. A sandboxed app may lack access to them.
  package let outside: [Value]
  /// The values at keys that the rule does not know which point to an old place, in the order of
  /// the file. They stay as they are.
  package let left: [Value]

  /// A value of the file.
  package struct Value: Sendable, Hashable {
    /// The key with those above it: `Profile0.Path`, `addons.3.path`.
    package let key: String
    /// The value.
    package let value: String
  }

  /// A replaced value.
  package struct Change: Sendable, Hashable {
    /// The key with those above it.
    package let key: String
    /// The old value.
    package let old: String
    /// The new value.
    package let new: String
  }
}

/// The error for a configuration file whose paths cannot be replaced.
package struct RewriteRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  /// The reason.
  package let reason: String

  /// The reason, for messages.
  package var description: String { "its paths cannot be rewritten: \(reason)" }
}

/// Collects the results for the values of a file.
struct RewritingFindings {
  private let mapping: PathMapping
  private(set) var changes: [Rewriting.Change] = []
  private(set) var outside: [Rewriting.Value] = []
  private(set) var left: [Rewriting.Value] = []

  init(_ mapping: PathMapping) { self.mapping = mapping }

  /// Returns the new value of a path or a URL of a file, or nil if it remains.
  mutating func replacement(of value: String, at key: String) -> String? {
    guard Self.isPath(value) else { return nil }
    guard let new = mapped(value) else {
      if !Self.isOfSystem(value) { outside.append(Rewriting.Value(key: key, value: value)) }
      return nil
    }
    guard !new.utf8.elementsEqual(value.utf8) else { return nil }
    changes.append(Rewriting.Change(key: key, old: value, new: new))
    return new
  }

  /// Whether a value points to an old place that moves.
  func pointsToOldPlace(_ value: String) -> Bool {
    guard Self.isPath(value), let new = mapped(value) else { return false }
    return !new.utf8.elementsEqual(value.utf8)
  }

  /// Records a value at an unknown key that points to an old place.
  mutating func keepOld(_ value: String, at key: String) {
    left.append(Rewriting.Value(key: key, value: value))
  }

  /// Returns the new form of a path or a URL, or nil if it is in no old place.
  private func mapped(_ value: String) -> String? {
    value.hasPrefix("/") ? mapping.newPath(of: ByteString(value))?.utf8 : mapping.newURL(of: value)
  }

  private static func isPath(_ value: String) -> Bool {
    value.hasPrefix("/") || value.hasPrefix("file:") || value.hasPrefix("jar:file:")
  }

  /// Records a value that cannot be mapped.
  mutating func leave(_ value: String, at key: String) {
    outside.append(Rewriting.Value(key: key, value: value))
  }

  /// Whether a path or URL points to installed programs, whose location differs in each form of an
  /// app: the app corrects these itself.
  private static func isOfSystem(_ value: String) -> Bool {
    var path = value[...]
    if path.hasPrefix("jar:") { path = path.dropFirst(4) }
    if path.hasPrefix("file://") { path = path.dropFirst(7) }
    let leavesPath = path.contains("/../") || path.hasSuffix("/..")
    return !leavesPath
      && ["/usr/", "/opt/", "/app/", "/snap/", "/var/lib/"].contains { path.hasPrefix($0) }
  }
}
