internal import SandboxModel
internal import SystemIO

/// Determines the identifiers and owners of containers: for bundles by their Info.plist, for the
/// others by their metadata or otherwise, as a guess, by the property lists in their preferences.
struct Identification {
  /// The identifiers of all bundles.
  let apps: Set<BundleIdentifier>
  /// The app of each extension in a bundle.
  let extensions: [BundleIdentifier: BundleIdentifier]

  /// Identifies the bundles first, then the other containers with their help.
  static func identify(_ drafts: inout [ContainerDraft], _ survey: inout Survey) {
    for index in drafts.indices where drafts[index].kind == .bundle {
      identifyBundle(&drafts[index], &survey)
    }
    let known = Identification(of: drafts)
    for index in drafts.indices where drafts[index].kind != .bundle {
      known.identify(&drafts[index])
    }
    let apps = Set(
      drafts.filter { $0.kind != .group && $0.kind != .extension }
        .compactMap(\.identifier))
    for index in drafts.indices {
      drafts[index].owner = known.owner(of: drafts[index], among: apps)
      if drafts[index].identifier == nil {
        survey.record(
          .unidentified, at: drafts[index].path, because: "the container cannot be identified")
      }
    }
  }

  private init(of drafts: [ContainerDraft]) {
    apps = Set(drafts.compactMap(\.identifier))
    var extensions: [BundleIdentifier: BundleIdentifier] = [:]
    for draft in drafts {
      guard let app = draft.identifier, let bundle = draft.bundle else { continue }
      for item in bundle.extensions where extensions[item.identifier] == nil {
        extensions[item.identifier] = app
      }
    }
    self.extensions = extensions
  }

  private static func identifyBundle(_ draft: inout ContainerDraft, _ survey: inout Survey) {
    let declared = draft.metadata?.identifier
    if let identifier = draft.bundle?.info?.identifier {
      draft.identifier = identifier
      draft.identification = .infoPlist
      if let declared, declared != identifier {
        survey.warn(
          .contradiction, at: draft.path,
          because:
            "its metadata names '\(declared)', its Info.plist '\(identifier)', which takes precedence"
        )
      }
    } else if let declared {
      draft.identifier = declared
      draft.identification = .metadata
    }
  }

  private func identify(_ draft: inout ContainerDraft) {
    if let declared = draft.metadata?.identifier {
      draft.identifier = declared
      draft.identification = .metadata
    } else if let named = draft.named {
      draft.identifier = named
      draft.identification = .layout
    } else if let guess = guess(draft) {
      draft.identifier = guess
      draft.identification = .preferences
    }
  }

  /// Returns the identifier indicated by the names in the preferences: the one that a bundle of
  /// this device has, or the only one, or a prefix of all others. Apple's names are used only if
  /// there are no others, a group's only for groups.
  private func guess(_ draft: ContainerDraft) -> BundleIdentifier? {
    let isGroup = draft.kind == .group
    let named = draft.preferences.compactMap { BundleIdentifier($0) }
      .filter { isGroup || !Self.isGroup($0) }
    let expected = draft.kind == .extension ? Set(extensions.keys) : apps
    let matching = isGroup ? named.filter { Self.isGroup($0) } : named.filter(expected.contains)
    if matching.count == 1 { return matching[0] }
    if matching.count > 1 { return Self.stem(of: matching) }
    let others = named.filter { !$0.bytes.bytes.starts(with: "com.apple.".utf8) }
    return Self.stem(of: others.isEmpty ? named : others)
  }

  /// Returns the only identifier, or the one that is a prefix of all others, or nil.
  private static func stem(of names: [BundleIdentifier]) -> BundleIdentifier? {
    guard let shortest = names.min(by: { $0.bytes.count < $1.bytes.count }) else { return nil }
    return names.allSatisfy { $0 == shortest || shortest.isPrefix(of: $0) } ? shortest : nil
  }

  private static func isGroup(_ identifier: BundleIdentifier) -> Bool {
    identifier.components.prefix(2).contains {
      $0.elementsEqual("group".utf8) || $0.elementsEqual("groups".utf8)
    }
  }

  /// Returns the app to which a container belongs: for an extension, the app whose bundle contains
  /// it or, failing that, the app with the longest identifier that is a prefix of the extension's.
  private func owner(
    of draft: ContainerDraft, among apps: Set<BundleIdentifier>
  ) -> BundleIdentifier? {
    guard let identifier = draft.identifier else { return nil }
    switch draft.kind {
    case .bundle, .data, .settings, .revision, .oldRevision, .systemData, .systemRevision, .config,
      .state, .cache, .logs, .runtime, .file:
      return identifier
    case .group, .folder: return nil
    case .extension:
      return extensions[identifier]
        ?? apps.filter { $0.isPrefix(of: identifier) }
        .max { $0.bytes.count < $1.bytes.count }
    }
  }
}
