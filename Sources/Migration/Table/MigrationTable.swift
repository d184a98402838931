// Moves an app's data between the forms in which the app is installed: from a deb's dotted
// directories into a Flatpak, from there into a snap, and back.
//
// A table (`MigrationTable`) lists the places of one app's data, with the path of each in every
// form that has it; a general table covers apps without one by the base directory specification. A
// route (`MigrationRoute`) maps a path of one side to the other. The plan (`MigrationPlan`) is
// computed from listings of both sides, and named rules (`RewriteRule`) replace paths of the old
// place in configuration files. The execution (`MigrationOperation`) copies the entries of the plan
// next to their destinations and puts them in place by the renames of one journal.
//
// A migration only adds entries: nothing in the target is replaced, and the source is not changed.

package import PolicyEngine
package import SystemIO

/// The places of an app's data in the forms in which it is installed.
package struct MigrationTable: Sendable {
  /// The table's name.
  package let name: String
  /// The display name of the app.
  package let title: String?
  /// Whether the table is for all apps that have no table of their own.
  package let isGeneral: Bool
  /// The identifiers of the app, by form.
  package let apps: [Packaging: [ByteString]]
  /// The names in a home directory that belong to no app.
  package let notApps: [Pattern]
  /// The places, in the order of the file.
  package let places: [Place]
  /// The remarks for the user after a migration.
  package let notes: [Note]
  /// The table's tests.
  package let examples: [MigrationExample]
  /// The start of the table.
  package let location: PolicyLocation

  /// Creates a table.
  package init(
    name: String, title: String? = nil, isGeneral: Bool = false,
    apps: [Packaging: [ByteString]] = [:], notApps: [Pattern] = [], places: [Place],
    notes: [Note] = [],
    examples: [MigrationExample] = [], location: PolicyLocation
  ) {
    self.name = name
    self.title = title
    self.isGeneral = isGeneral
    self.apps = apps
    self.notApps = notApps
    self.places = places
    self.notes = notes
    self.examples = examples
    self.location = location
  }

  /// Whether a name in a home directory belongs to no app.
  package func isNoApp(_ name: ByteString) -> Bool {
    notApps.contains { pattern in
      pattern.isMatch(name.withSpan { pattern.advance(pattern.start, by: $0) })
    }
  }

  /// Whether the table is for an app of this form.
  package func isFor(_ app: ByteString, as packaging: Packaging) -> Bool {
    apps[packaging]?.contains(app) ?? false
  }
}

extension MigrationTable {
  /// A place of an app's data: a directory or a file with everything below it.
  package struct Place: Sendable, Hashable {
    /// The identifier, unique in the table.
    package let id: String
    /// The path in each form that has the place.
    package let paths: [Packaging: Path]
    /// The entries below it that are not moved.
    package let skips: [Skip]
    /// The rules for configuration files below it.
    package let rewrites: [RewriteRule]
    /// The reference.
    package let source: String
    /// The position in the file.
    package let location: PolicyLocation

    /// Creates a place.
    package init(
      id: String, paths: [Packaging: Path], skips: [Skip] = [], rewrites: [RewriteRule] = [],
      source: String, location: PolicyLocation
    ) {
      self.id = id
      self.paths = paths
      self.skips = skips
      self.rewrites = rewrites
      self.source = source
      self.location = location
    }

    /// Returns the path in a form, or nil if that form does not have the place. Debian packages use
    /// the paths of the host unless the table states another.
    package func path(in packaging: Packaging) -> Path? {
      paths[packaging] ?? (packaging == .deb ? paths[.host] : nil)
    }

    /// Returns why an entry is not moved, or nil if it is.
    ///
    /// - Parameters:
    ///   - inner: The path relative to the place; empty for the place itself.
    ///   - isLink: Whether the entry is a symbolic link.
    package func skip(of inner: ByteString, isLink: Bool = false) -> Skip? {
      skips.first { $0.isOfLinks ? isLink && $0.matches(inner) : $0.covers(inner) }
    }
  }

  /// A path in a form: in the directory of the app's data, or in the home directory.
  package struct Path: Sendable, Hashable {
    /// Whether the path is relative to the home directory although the form has a directory for the
    /// app's data, as for classic snaps. Written `~/…`.
    package let isInHome: Bool
    /// The relative path.
    package let bytes: ByteString

    /// Creates a path.
    package init(_ bytes: ByteString, isInHome: Bool = false) {
      self.bytes = bytes
      self.isInHome = isInHome
    }

    /// Returns the path relative to the home directory.
    package func inHome(of end: MigrationEnd) -> ByteString {
      isInHome ? bytes : end.container.appending(bytes)
    }
  }

  /// Entries that are not moved, with the reason.
  package struct Skip: Sendable, Hashable {
    /// The pattern, relative to the place.
    package let pattern: Pattern
    /// Whether the rule is only for symbolic links, and not for entries below a directory.
    package let isOfLinks: Bool
    /// The reason.
    package let why: String

    /// Creates a rule.
    package init(_ pattern: Pattern, isOfLinks: Bool = false, why: String) {
      self.pattern = pattern
      self.isOfLinks = isOfLinks
      self.why = why
    }

    /// Whether the pattern matches an entry itself.
    func matches(_ inner: ByteString) -> Bool {
      let end = inner.components.reduce(pattern.start) { progress, name in
        name.withSpan { pattern.advance(progress, by: $0) }
      }
      return pattern.isMatch(end)
    }

    /// Whether the pattern matches an entry or a directory above it.
    func covers(_ inner: ByteString) -> Bool {
      var progress = pattern.start
      if pattern.isMatch(progress) { return true }
      for name in inner.components {
        progress = name.withSpan { pattern.advance(progress, by: $0) }
        if pattern.isMatch(progress) { return true }
        if progress.isHopeless { return false }
      }
      return false
    }
  }

  /// A remark for the user after a migration into a form.
  package struct Note: Sendable, Hashable {
    /// The forms of the target to which it applies.
    package let targets: Set<Packaging>
    /// The text.
    package let text: String

    /// Creates a remark.
    package init(for targets: Set<Packaging>, _ text: String) {
      self.targets = targets
      self.text = text
    }
  }
}

/// A path with its expected destination; a test within a table.
package struct MigrationExample: Sendable, Hashable {
  /// The form of the source.
  package let from: Packaging
  /// The form of the target.
  package let to: Packaging
  /// The entry, relative to the source's directory for the app, or to the home directory if it
  /// begins with `~/`.
  package let path: MigrationTable.Path
  /// The expected result.
  package let expected: Expectation
  /// The position in the file.
  package let location: PolicyLocation

  /// An expected result.
  package enum Expectation: Sendable, Hashable {
    /// The entry moves to this path.
    case moves(MigrationTable.Path)
    /// The target has no place for it.
    case noPlace
    /// A rule excludes it.
    case skipped
  }
}
