internal import SandboxModel
internal import SystemIO

/// Finds the data of a user's desktop programs in the base directories of a home directory: each
/// entry of a base directory belongs to the app of that name (XDG Base Directory Specification).
///
/// A directory is the app's container of that base directory, and a file, of which desktops store
/// many directly in `.config`, a container of one file. The files of a SQLite database form one
/// container: the database without its log would be inconsistent. Names are compared by their
/// bytes, so `.config/GIMP` and `.cache/gimp` are two apps: no rule says that they are one.
struct XDGFinder {
  /// A base directory.
  struct Base {
    let kind: ContainerKind
    /// The default location below the home directory.
    let path: ByteString
    /// The base of single files in logical paths, or nil for caches, whose files are not needed.
    let ofFiles: LogicalContainer.BaseDirectory?
  }

  /// The base directories at their default locations. The environment variables of this process may
  /// not be those of the home directory's user.
  static let bases: [Base] = [
    Base(kind: .config, path: ".config", ofFiles: .config),
    Base(kind: .data, path: ".local/share", ofFiles: .data),
    Base(kind: .state, path: ".local/state", ofFiles: .state),
    Base(kind: .cache, path: ".cache", ofFiles: nil),
  ]

  /// The name of this program's own directories in the base directories.
  static let program: ByteString = "sandboxctl"

  private(set) var drafts: [ContainerDraft] = []

  /// Scans all base directories. A directory that a link in another base directory leads to belongs
  /// to the base directory that contains it, so links come last. A directory in a cache that a link
  /// in another base directory leads to is not recreatable, so caches come after those links.
  mutating func search(in home: borrowing Directory, _ survey: inout Survey) {
    for areCaches in [false, true] {
      for areLinks in [false, true] {
        for base in Self.bases where (base.kind == .cache) == areCaches {
          search(base, in: home, areLinks: areLinks, &survey)
        }
      }
    }
    survey.removeInner(&drafts)
  }

  /// Scans the links in a base directory, or its other entries.
  private mutating func search(
    _ base: Base, in home: borrowing Directory, areLinks: Bool, _ survey: inout Survey
  ) {
    guard
      case .directory(let directory) = survey.descend(base.path.components, from: home, as: "")
    else { return }
    for name in survey.names(in: directory, as: base.path) where Self.isApp(name, in: base) {
      let kind = survey.kind(of: name, in: directory, as: base.path.appending(name))
      guard let kind, (kind == .symlink) == areLinks else { continue }
      add(name, kind, in: directory, of: base, survey: &survey)
    }
  }

  /// Adds an entry of a base directory. A link to a file, and a dangling one, is stored as a link.
  private mutating func add(
    _ name: ByteString, _ kind: FileKind, in directory: borrowing Directory, of base: Base,
    survey: inout Survey
  ) {
    if kind == .file || kind == .symlink && !Self.leadsToDirectory(name, in: directory) {
      if kind == .file, Self.isOfDatabase(name, in: directory) { return }
      if kind == .symlink { noteTarget(of: name, in: directory, of: base, &survey) }
      addFile(name, in: directory, of: base, &survey)
    } else if kind == .symlink, base.kind == .cache {
      // The link may lead to precious data, which a purge would delete.
      survey.record(
        .excluded, at: base.path.appending(name),
        because: "it is a link in a directory of caches, and is neither followed nor purged")
    } else if base.kind == .cache, Self.isMount(name, in: directory) {
      // So may a mount: without XDG_RUNTIME_DIR, `doc` is the portal to the user's own documents,
      // and `gvfs` has files of servers.
      survey.record(
        .excluded, at: base.path.appending(name),
        because: "it is a mount in a directory of caches, and is neither entered nor purged")
    } else if let draft = survey.container(
      base.kind, name, of: name, in: directory, as: base.path.appending(name))
    {
      drafts.append(draft)
    }
  }

  private static func leadsToDirectory(
    _ name: ByteString, in directory: borrowing Directory
  ) -> Bool {
    (try? directory.statusFollowing(name))?.kind == .directory
  }

  private static func isMount(_ name: ByteString, in directory: borrowing Directory) -> Bool {
    (try? directory.status(name))?.isMountPoint ?? true
  }

  /// Whether a file is the log, the journal or the index of a database beside it, and so part of
  /// the database's container.
  private static func isOfDatabase(_ name: ByteString, in directory: borrowing Directory) -> Bool {
    guard let database = Container.database(ofFile: name),
      let kind = (try? directory.status(database))?.kind
    else { return false }
    return kind == .file || kind == .symlink && !leadsToDirectory(database, in: directory)
  }

  /// Notes that the file that a link leads to may not be in a container.
  private func noteTarget(
    of name: ByteString, in directory: borrowing Directory, of base: Base, _ survey: inout Survey
  ) {
    guard base.ofFiles != nil, (try? directory.statusFollowing(name))?.kind == .file,
      let target = try? directory.target(of: name)
    else { return }
    survey.record(
      .excluded, at: base.path.appending(name),
      because: "it is a link to the file '\(target)' and is stored as a link; the file itself is "
        + "backed up only if it is in a container")
  }

  private mutating func addFile(
    _ name: ByteString, in directory: borrowing Directory, of base: Base, _ survey: inout Survey
  ) {
    guard let ofFiles = base.ofFiles else { return }
    var draft = ContainerDraft(
      kind: .file, path: base.path, absolutePath: directory.path, uuid: name)
    draft.member = name
    draft.base = ofFiles
    drafts.append(survey.named(draft, after: name))
  }

  /// Whether an entry belongs to an app. This program's own cache contains its state files and
  /// locks, which no purge may delete while it runs.
  private static func isApp(_ name: ByteString, in base: Base) -> Bool {
    !OwnNames.has(name) && !(base.kind == .cache && name == program)
  }

  /// Whether a home directory has one of the base directories, or the directory of this program
  /// that a migration into a new home creates; unless the layout was requested, the two that every
  /// desktop has are required.
  static func isHome(isAsked: Bool, has: (ByteString) -> Bool) -> Bool {
    isAsked
      ? bases.contains { has($0.path) } || has(OwnNames.directory)
      : has(".config") && has(".local/share")
  }

  /// Notes the other content of a home directory whose layout was detected: the user may expect all
  /// of it to be backed up.
  private static func noteOthers(in home: borrowing Directory, _ survey: inout Survey) {
    let own = Set(bases.compactMap { $0.path.components.first })
    let others = ((try? home.names()) ?? []).filter { !own.contains($0) && !OwnNames.has($0) }
    guard let first = others.first else { return }
    survey.record(
      .excluded, at: survey.root,
      because: "its layout was detected as xdg, in which only the base directories are backed up: "
        + "what else it contains, such as '\(first)', is not; '--layout folder' backs up all")
  }

  /// Scans a home directory. Which programs are installed is unknown, so each app counts as
  /// installed.
  static func device(in home: borrowing Directory, for asked: DeviceFinder) -> Device {
    var survey = Survey(root: home.path)
    var finder = XDGFinder()
    finder.search(in: home, &survey)
    if asked.layout == nil { noteOthers(in: home, &survey) }
    return Device(
      root: home.path, layout: .xdg, identity: asked.identity(.xdg, home.path),
      apps: Set(finder.drafts.compactMap(\.identifier)).sorted().map {
        App($0, isInstalled: true)
      },
      containers: LogicalNaming.containers(of: finder.drafts, &survey),
      // Each base directory is examined twice.
      findings: Set(survey.findings).sorted())
  }
}
