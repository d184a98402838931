package import SystemIO

/// Maps the paths of an app's data from one form of the app to another.
package struct MigrationRoute: Sendable {
  /// The source.
  package let from: MigrationEnd
  /// The target.
  package let to: MigrationEnd
  /// The app's own table.
  package let table: MigrationTable?
  /// The table for data that the app's own table does not cover.
  package let general: MigrationTable?
  /// The names of directories that the app has outside sandboxes, for the general table.
  private let names: MigrationNames

  /// The result for a path.
  package enum Destination: Hashable, Sendable {
    /// The path in the target, relative to its home directory.
    case path(ByteString)
    /// The entry is not moved, for this reason.
    case skipped(String)
    /// The target has no place for it.
    case noPlace

    /// Whether a rule excludes the entry.
    package var isSkipped: Bool { if case .skipped = self { true } else { false } }

    /// The result for a file beside the entry, with a suffix after its name.
    func followed(by suffix: [UInt8]) -> Destination {
      if case .path(let path) = self { .path(path.concatenating(ByteString(suffix))) } else { self }
    }

    /// The result in messages.
    var summary: String {
      switch self {
      case .path(let path): "a move to '\(path)'"
      case .skipped(let why): "a skip rule (\(why))"
      case .noPlace: "no place for it"
      }
    }
  }

  /// Creates a route.
  package init(
    from: MigrationEnd, to: MigrationEnd, table: MigrationTable?, general: MigrationTable?,
    names: MigrationNames
  ) {
    self.from = from
    self.to = to
    self.table = table
    self.general = general
    self.names = names
  }

  /// Creates the route between two forms of an app by the tables of a library. Between two forms
  /// outside sandboxes an app without a table has the directories of exactly its name.
  package init(from: MigrationEnd, to: MigrationEnd, in library: MigrationLibrary) {
    let table =
      library.table(for: from.app, as: from.packaging)
      ?? library.table(for: to.app, as: to.packaging)
    let isOutside = !from.packaging.isSandbox && !to.packaging.isSandbox
    let sandbox = from.packaging.isSandbox ? from : to
    self.init(
      from: from, to: to, table: table, general: library.general,
      names: isOutside ? MigrationNames(exactly: from.app) : MigrationNames(of: sandbox.app))
  }

  /// Returns the result for an entry.
  ///
  /// Between two homes of one form every path of the app's directory stays the same; only skip
  /// rules apply. Otherwise the place with the longest path decides, in the app's own table before
  /// the general one.
  ///
  /// - Parameters:
  ///   - path: The entry, relative to the source's home directory.
  ///   - isLink: Whether it is a symbolic link.
  package func destination(of path: ByteString, isLink: Bool = false) -> Destination {
    let found = place(of: path)
    if let skip = found.flatMap({ $0.place.skip(of: $0.inner, isLink: isLink) }) {
      return .skipped(skip.why)
    }
    if from.packaging == to.packaging, from.packaging.isSandbox, path.isWithin(from.container) {
      return .path(to.container.appending(path.relative(to: from.container)))
    }
    guard let found, let target = found.place.path(in: to.packaging) else { return .noPlace }
    return .path(target.inHome(of: to).appending(found.inner))
  }

  /// Returns the place of an entry with the path in it, or nil if no place covers the entry.
  package func place(of path: ByteString) -> (place: MigrationTable.Place, inner: ByteString)? {
    if let found = longest(in: table, around: path) { return found }
    guard let found = longest(in: general, around: path) else { return nil }
    guard from.packaging.isSandbox else {
      // Outside sandboxes the directories of all apps are next to each other.
      guard let name = found.inner.components.first, names.contains(name) else { return nil }
      return found
    }
    return found
  }

  private func longest(
    in table: MigrationTable?, around path: ByteString
  ) -> (place: MigrationTable.Place, inner: ByteString)? {
    var best: (place: MigrationTable.Place, inner: ByteString, length: Int)?
    for place in table?.places ?? [] {
      guard let start = place.path(in: from.packaging)?.inHome(of: from), path.isWithin(start),
        start.count > best?.length ?? -1
      else { continue }
      best = (place, path.relative(to: start), start.count)
    }
    return best.map { ($0.place, $0.inner) }
  }

  /// The entries to list in the source, relative to its home directory: the app's directory, or
  /// outside sandboxes each place and the directories with the app's names. Sorted, none within
  /// another.
  package var sources: [ByteString] {
    var paths: Set<ByteString> = []
    if from.packaging == .snap {
      // The revisions are siblings of the link to the current one.
      paths = ["common", "current"].reduce(into: []) {
        $0.insert(from.container.appending(ByteString($1)))
      }
    } else if from.packaging.isSandbox {
      paths = [from.container]
    }
    for path in table?.places.compactMap({ $0.path(in: from.packaging)?.inHome(of: from) }) ?? [] {
      paths.insert(path)
    }
    if !from.packaging.isSandbox {
      for path in general?.places.compactMap({ $0.path(in: from.packaging)?.bytes }) ?? [] {
        for name in names.all { paths.insert(path.appending(name)) }
      }
    }
    return paths.sorted().filter { path in
      !paths.contains { $0 != path && path.isWithin($0) }
    }
  }

  /// The paths that a running app uses, old and new, for the places that both forms have. The real
  /// path of an old place is included where the app sees another one.
  package var mapping: PathMapping {
    var pairs: [PathMapping.Pair] = []
    func add(_ old: ByteString, _ new: ByteString) {
      let target = to.seenPath(of: new)
      for path in [from.seenPath(of: old), from.home.appending(old)] {
        pairs.append(PathMapping.Pair(old: path, new: target))
      }
    }
    for place in (table?.places ?? []) + (general?.places ?? []) {
      guard let old = place.path(in: from.packaging)?.inHome(of: from),
        let new = place.path(in: to.packaging)?.inHome(of: to)
      else { continue }
      if place.isOf(table) || from.packaging.isSandbox {
        add(old, new)
      } else {
        for name in names.all { add(old.appending(name), new.appending(name)) }
      }
    }
    if from.packaging == to.packaging, from.packaging.isSandbox {
      add(from.container, to.container)
    }
    return PathMapping(pairs)
  }
}

extension MigrationTable.Place {
  /// Whether the place is in a table.
  fileprivate func isOf(_ table: MigrationTable?) -> Bool { table?.places.contains(self) ?? false }
}

/// The names that an app's directories can have outside sandboxes, such as `~/.config/NAME`.
package struct MigrationNames: Sendable, Hashable {
  /// The names, sorted; nil if every name is the app's.
  private let names: [ByteString]?

  /// Every name.
  package static let anyName = MigrationNames(names: nil)

  private init(names: [ByteString]?) { self.names = names }

  /// Creates the names of an app with one name, which is not an identifier.
  package init(exactly name: ByteString) { names = name.nameFault == nil ? [name] : [] }

  /// Derives the names from an identifier: the identifier itself, its last component, and the
  /// latter in lower case, with the vendor before it for GNOME and KDE (`org.gnome.Maps`:
  /// `gnome-maps`).
  package init(of identifier: ByteString) {
    let parts = identifier.bytes.split(separator: UInt8(ascii: ".")).map { ByteString($0) }
    var names: Set<ByteString> = [identifier]
    if let last = parts.last {
      let lower = last.lowercasedASCII
      names.formUnion([last, lower])
      if parts.count == 3, parts[1] == "gnome" || parts[1] == "kde" {
        names.insert(parts[1].concatenating("-").concatenating(lower))
      }
    }
    self.names = names.filter { $0.nameFault == nil }.sorted()
  }

  /// The names; empty if every name is the app's.
  var all: [ByteString] { names ?? [] }

  /// Whether a directory of this name is the app's.
  func contains(_ name: ByteString) -> Bool { names?.contains(name) ?? true }
}

extension ByteString {
  /// The bytes with ASCII letters in lower case.
  var lowercasedASCII: ByteString {
    ByteString(bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 })
  }
}
