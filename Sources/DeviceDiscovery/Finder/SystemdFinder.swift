internal import SandboxModel
internal import SystemIO

/// Finds the directories of a system's units: those that StateDirectory=, CacheDirectory=,
/// LogsDirectory=, ConfigurationDirectory= and RuntimeDirectory= name, below their base directories
/// (systemd.exec(5), "Sandboxing").
///
/// Each unit with an existing directory is an app. Several units may use one directory: it belongs
/// to the one that has its name, or to the first. A directory inside another unit's directory is
/// part of the latter.
struct SystemdFinder {
  /// A directory that a unit's settings name.
  struct Claim {
    let unit: UnitName
    let purpose: UnitFile.Purpose
    /// The path below the base directory.
    let path: ByteString
    let isDynamicUser: Bool

    /// The path below the system's root.
    var full: ByteString { purpose.base.appending(path) }
  }

  private(set) var drafts: [ContainerDraft] = []
  /// The descriptions of units, by name.
  private var titles: [ByteString: ByteString] = [:]

  /// Collects the claims of all units and opens the directories that exist.
  mutating func search(in root: borrowing Directory, _ files: UnitFiles, _ survey: inout Survey) {
    var claims: [ByteString: [Claim]] = [:]
    for unit in files.units {
      let settings = files.settings(of: unit)
      titles[unit.name] = settings.title
      for claim in Self.claims(of: unit, settings, &survey) {
        claims[claim.full, default: []].append(claim)
      }
    }
    // A directory inside a cache that a link leads to is not recreatable, so caches come last.
    let paths = claims.keys.sorted()
    for isRecreated in [false, true] {
      for path in paths {
        guard let all = claims[path], all.first?.purpose.kind.isRecreated == isRecreated else {
          continue
        }
        open(all, at: path, in: root, &survey)
      }
    }
    survey.removeInner(&drafts)
  }

  /// Returns the claims of a unit, with a note for each word that does not name a directory.
  static func claims(
    of unit: UnitName, _ settings: UnitSettings, _ survey: inout Survey
  ) -> [Claim] {
    if settings.omitted > 0 {
      survey.warn(
        .excluded, at: unit.name,
        because: "it names more than \(UnitFile.Limit.directories) directories; "
          + "\(settings.omitted) settings or directories are not used")
    }
    return settings.words.compactMap { word in
      switch UnitFile.path(word.text, of: unit) {
      case .path(let path):
        return Claim(
          unit: unit, purpose: word.purpose, path: path, isDynamicUser: settings.isDynamicUser)
      case .unusable(let reason):
        survey.record(
          .unusableName, at: unit.name,
          because: "\(word.purpose.rawValue)=\(word.text) is not used: \(reason)")
        return nil
      }
    }
  }

  private mutating func open(
    _ claims: [Claim], at path: ByteString, in root: borrowing Directory, _ survey: inout Survey
  ) {
    guard let claim = Self.owner(among: claims),
      let draft = Self.draft(of: claim, in: root, &survey)
    else { return }
    drafts.append(draft)
    for other in Set(claims.map(\.unit)).sorted(by: { $0.name < $1.name })
    where other != claim.unit {
      survey.record(
        .repeatedDirectory, at: path,
        because: "'\(other.name)' uses it as well; it belongs to '\(claim.unit.name)'")
    }
  }

  /// Returns the claim of the unit with the name of the directory, otherwise the first.
  private static func owner(among claims: [Claim]) -> Claim? {
    claims.first { $0.path.components.contains($0.unit.stem) } ?? claims.first
  }

  private static func draft(
    of claim: Claim, in root: borrowing Directory, _ survey: inout Survey
  ) -> ContainerDraft? {
    let base = claim.purpose.base
    guard case .directory(let home) = survey.descend(base.components, from: root, as: "") else {
      return nil
    }
    // The directory of a dynamic user is in `private`, usually behind a link with its public name.
    for above in claim.isDynamicUser ? [base, base.appending("private")] : [base] {
      let path = above.appending(claim.path)
      if claim.purpose.kind == .cache,
        let mount = CacheMount.path(at: root.path.appending(path), in: home.path)
      {
        survey.record(
          .excluded, at: path,
          because: "'\(mount)' is a mount in a directory of caches, and is neither entered nor "
            + "purged")
        return nil
      }
      guard let name = path.lastComponent,
        case .directory(let parent) = survey.descend(path.parent.components, from: root, as: ""),
        var draft = survey.opened(claim.purpose.kind, name, in: parent, as: path)
      else { continue }
      // A link in a cache may lead to precious data, which a purge would delete.
      let isInSystem = draft.absolutePath.isWithin(root.path)
      let isInBase = draft.absolutePath.isWithin(home.path)
      guard isInSystem, isInBase || !claim.purpose.kind.isRecreated else {
        let place = isInSystem ? "'\(base)'" : "the system"
        survey.record(
          .excluded, at: path,
          because: "a link leads to '\(draft.absolutePath)', which is outside \(place) and not used"
        )
        return nil
      }
      draft.unitDirectory = (claim.purpose.purpose, claim.path)
      return survey.named(draft, after: claim.unit.name)
    }
    return nil
  }

  /// Scans a system.
  static func device(in root: borrowing Directory, for asked: DeviceFinder) -> Device {
    var survey = Survey(root: root.path)
    var finder = SystemdFinder()
    finder.search(in: root, UnitFiles(below: root, &survey), &survey)
    let containers = LogicalNaming.containers(of: finder.drafts, &survey)
    return Device(
      root: root.path, layout: .systemd, facts: Device.Facts(platform: "Linux"),
      identity: asked.identity(.systemd, root.path),
      apps: Set(finder.drafts.compactMap(\.identifier)).sorted().map {
        App($0, isInstalled: true, displayName: finder.titles[$0.bytes])
      }, containers: containers,
      // Base directories are examined for each unit.
      findings: Set(survey.findings).sorted())
  }
}

extension UnitFile.Purpose {
  /// The base directory below the system's root (systemd.exec(5), the table of directories).
  var base: ByteString { purpose.base }

  var purpose: LogicalContainer.UnitPurpose {
    switch self {
    case .state: .state
    case .cache: .cache
    case .logs: .logs
    case .config: .config
    case .runtime: .runtime
    }
  }

  var kind: ContainerKind { purpose.kind }
}

extension LogicalContainer.UnitPurpose {
  /// The base directory below the system's root.
  var base: ByteString {
    switch self {
    case .state: "var/lib"
    case .cache: "var/cache"
    case .logs: "var/log"
    case .config: "etc"
    case .runtime: "run"
    }
  }
}
