internal import Codecs
internal import SandboxModel
internal import SystemIO

extension Survey {
  /// Reads a container, or returns nil if the entry cannot be one.
  mutating func container(
    _ kind: ContainerKind, _ name: ByteString, in parent: borrowing Directory, as path: ByteString
  ) -> ContainerDraft? {
    switch enter(name, in: parent, as: path) {
    case .none: return nil
    case .closed:
      return ContainerDraft(
        kind: kind, path: path, absolutePath: parent.path.appending(name), uuid: name,
        isReadable: false)
    case .directory(let directory):
      guard claim(directory, as: path) else { return nil }
      var draft = ContainerDraft(
        kind: kind, path: path, absolutePath: directory.path, uuid: name)
      draft.metadata = metadata(ContainerMetadata.fileName, of: kind, in: directory, as: path)
      if kind == .bundle {
        draft.bundle = bundle(in: directory, as: path)
      } else if draft.metadata?.identifier == nil {
        draft.preferences = preferences(in: directory, as: path)
      }
      return draft
    }
  }

  /// Reads a container that the layout names after its app, or returns nil if the entry cannot be
  /// one.
  mutating func container(
    _ kind: ContainerKind, _ name: ByteString, of app: ByteString, in parent: borrowing Directory,
    as path: ByteString
  ) -> ContainerDraft? {
    opened(kind, name, in: parent, as: path).map { named($0, after: app) }
  }

  /// Opens a possible container that is not identified yet.
  mutating func opened(
    _ kind: ContainerKind, _ name: ByteString, in parent: borrowing Directory, as path: ByteString
  ) -> ContainerDraft? {
    let isReadable: Bool
    let real: ByteString
    switch enter(name, in: parent, as: path) {
    case .none: return nil
    case .closed: (isReadable, real) = (false, parent.path.appending(name))
    case .directory(let directory):
      guard claim(directory, as: path) else { return nil }
      (isReadable, real) = (true, directory.path)
    }
    return ContainerDraft(
      kind: kind, path: path, absolutePath: real, uuid: name, isReadable: isReadable)
  }

  /// Returns the draft with the app that its location identifies.
  mutating func named(_ draft: ContainerDraft, after app: ByteString) -> ContainerDraft {
    var draft = draft
    draft.identifier = BundleIdentifier(app)
    draft.owner = draft.identifier
    draft.identification = draft.identifier == nil ? .none : .layout
    if draft.identifier == nil {
      record(.unidentified, at: draft.path, because: "its name is too long for an app's identifier")
    }
    return draft
  }

  /// Removes the directories that are inside that of another draft, so that no file is in two
  /// containers. Data inside a cache that a link leads to must not be part of the cache, where it
  /// would not be backed up and could be purged: the cache is removed instead.
  mutating func removeInner(_ drafts: inout [ContainerDraft]) {
    removeOuterCaches(&drafts)
    let paths = Set(drafts.filter { $0.member == nil }.map(\.absolutePath))
    drafts.removeAll { draft in
      var above = draft.absolutePath
      while draft.member == nil, above.components.count > 1 {
        above = above.parent
        guard paths.contains(above) else { continue }
        record(
          .repeatedDirectory, at: draft.path,
          because: "it is in the directory '\(above)' of another container and is part of that")
        return true
      }
      return false
    }
  }

  /// Removes the caches and the runtime directories that contain a directory of another kind.
  private mutating func removeOuterCaches(_ drafts: inout [ContainerDraft]) {
    var outer: Set<ByteString> = []
    for draft in drafts where !draft.kind.isRecreated {
      var above = draft.absolutePath
      while above.components.count > 1 {
        above = above.parent
        outer.insert(above)
      }
    }
    drafts.removeAll { draft in
      guard draft.kind.isRecreated, outer.contains(draft.absolutePath) else { return false }
      warn(
        .repeatedDirectory, at: draft.path,
        because: "it contains the directory of another container, which is no "
          + "\(draft.kind.rawValue), and is excluded")
      return true
    }
  }

  /// Reads the container manager's metadata, or returns nil, with a warning if the file is not
  /// usable.
  ///
  /// - Parameter kind: The container kind according to the location, or nil if the location does
  ///   not determine it.
  mutating func metadata(
    _ name: ByteString, of kind: ContainerKind?, in directory: borrowing Directory,
    as path: ByteString
  ) -> ContainerMetadata? {
    let file = path.appending(name)
    guard let list = dictionary(name, in: directory, as: file) else { return nil }
    if let kind { checkContentClass(list, of: kind, as: file) }
    let identifier = identifier("MCMMetadataIdentifier", of: list, as: file)
    if identifier == nil, list["MCMMetadataIdentifier"] == nil {
      warn(.wrongValue, at: file, because: "it has no MCMMetadataIdentifier")
    }
    let uuid = list["MCMMetadataUUID"]?.stringValue.map { ByteString($0) }
    return ContainerMetadata(identifier: identifier, uuid: uuid)
  }

  /// Compares the content class with the location. The platform guide documents only the number 2,
  /// an app's data; the numbers of other classes are not used.
  private mutating func checkContentClass(
    _ list: PropertyList, of kind: ContainerKind, as file: ByteString
  ) {
    guard let number = list["MCMMetadataContentClass"]?.integerValue else { return }
    if (number == 2) != (kind == .data) {
      warn(
        .contradiction, at: file,
        because:
          "MCMMetadataContentClass is \(number), but its location is that of kind "
          + "\(kind.rawValue), which takes precedence")
    }
  }

  private mutating func preferences(
    in directory: borrowing Directory, as path: ByteString
  ) -> [ByteString] {
    do {
      guard try directory.statusIfPresent("Library")?.kind == .directory else { return [] }
      let library = try directory.directory("Library")
      guard try library.statusIfPresent("Preferences")?.kind == .directory else { return [] }
      let names = try library.directory("Preferences").names()
      return names.filter { $0.hasSuffix(".plist") }.map { ByteString($0.bytes.dropLast(6)) }
        .filter { $0.bytes.contains(UInt8(ascii: ".")) && $0.bytes.first != UInt8(ascii: ".") }
    } catch {
      warn(
        .unreadable, at: path.appending("Library/Preferences"),
        because: "it cannot be read: \(error.reason)")
      return []
    }
  }
}

extension ContainerKind {
  /// Whether programs recreate the content of containers of the kind, so that it is not backed up.
  var isRecreated: Bool { self == .cache || self == .runtime }
}
