internal import SandboxModel
internal import SystemIO

/// Finds the data of a user's desktop programs in the base directories of a home directory: each
/// entry of a base directory belongs to the app of that name (XDG Base Directory Specification).
///
/// A directory is the app's container of that base directory, and a file, of which desktops store
/// many directly in `.config`, a container of one file. Names are compared by their bytes, so
/// `.config/GIMP` and `.cache/gimp` are two apps: no rule says that they are one.
struct XDGFinder {
  /// A base directory.
  struct Base {
    let kind: ContainerKind
    /// The default location below the home directory.
    let path: ByteString
    /// The place of single files, or nil for caches, whose files nobody needs.
    let place: LogicalContainer.FilePlace?
  }

  /// The base directories at their default locations. The variables of this process need not be
  /// those of the home directory's user.
  static let bases: [Base] = [
    Base(kind: .config, path: ".config", place: .config),
    Base(kind: .data, path: ".local/share", place: .data),
    Base(kind: .state, path: ".local/state", place: .state),
    Base(kind: .cache, path: ".cache", place: nil),
  ]

  /// The name of this program's own directories in the base directories.
  private static let program: ByteString = "sandboxctl"

  private(set) var drafts: [ContainerDraft] = []

  /// Scans all base directories. A directory that a link in another base directory leads to belongs
  /// to the one that contains it, so links come last.
  mutating func search(in home: borrowing Directory, _ survey: inout Survey) {
    for areLinks in [false, true] {
      for base in Self.bases {
        guard
          case .directory(let directory) = survey.descend(
            base.path.components, from: home, as: "")
        else { continue }
        for name in survey.names(in: directory, as: base.path) where Self.isApp(name, in: base) {
          let kind = survey.kind(of: name, in: directory, as: base.path.appending(name))
          guard let kind, (kind == .symlink) == areLinks else { continue }
          add(name, kind, in: directory, of: base, survey: &survey)
        }
      }
    }
    survey.removeInner(&drafts)
  }

  /// Adds an entry of a base directory. A link to a file, or to none, is stored as a link.
  private mutating func add(
    _ name: ByteString, _ kind: FileKind, in directory: borrowing Directory, of base: Base,
    survey: inout Survey
  ) {
    let isLinkToNone =
      kind == .symlink && (try? directory.statusFollowing(name))?.kind != .directory
    if kind == .file || isLinkToNone {
      addFile(name, in: directory, of: base, &survey)
    } else if let draft = survey.container(
      base.kind, name, of: name, in: directory, as: base.path.appending(name))
    {
      drafts.append(draft)
    }
  }

  private mutating func addFile(
    _ name: ByteString, in directory: borrowing Directory, of base: Base, _ survey: inout Survey
  ) {
    guard let place = base.place else { return }
    var draft = ContainerDraft(
      kind: .file, path: base.path, absolutePath: directory.path, uuid: name)
    draft.member = name
    draft.place = place
    drafts.append(survey.named(draft, after: name))
  }

  /// Whether an entry belongs to an app. This program's own cache contains its state files and
  /// locks, which no purge may delete while it runs.
  private static func isApp(_ name: ByteString, in base: Base) -> Bool {
    !OwnNames.has(name) && !(base.kind == .cache && name == program)
  }

  /// Whether a home directory has one of the base directories; unless the layout was requested, the
  /// two that every desktop has.
  static func isHome(isAsked: Bool, has: (ByteString) -> Bool) -> Bool {
    isAsked ? bases.contains { has($0.path) } : has(".config") && has(".local/share")
  }

  /// Scans a home directory. Which programs are installed is unknown, so each app counts as
  /// installed.
  static func device(in home: borrowing Directory, for asked: DeviceFinder) -> Device {
    var survey = Survey(root: home.path)
    var finder = XDGFinder()
    finder.search(in: home, &survey)
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
