internal import SystemIO

extension Survey {
  /// Looks at one container; nil when nothing is there that could be one.
  mutating func container(
    _ kind: ContainerKind, _ name: ByteString, in parent: borrowing Folder, as path: ByteString
  ) -> ContainerDraft? {
    switch enter(name, in: parent, as: path) {
    case .none: return nil
    case .closed:
      return ContainerDraft(
        kind: kind, path: path, absolutePath: parent.path.appending(name), uuid: name,
        isReadable: false)
    case .folder(let folder):
      guard take(folder, as: path) else { return nil }
      var draft = ContainerDraft(
        kind: kind, path: path, absolutePath: folder.path, uuid: name)
      draft.metadata = metadata(of: kind, in: folder, as: path)
      if kind == .bundle {
        draft.bundle = bundle(in: folder, as: path)
      } else if draft.metadata?.identifier == nil {
        draft.preferences = preferences(in: folder, as: path)
      }
      return draft
    }
  }

  private mutating func metadata(
    of kind: ContainerKind, in folder: borrowing Folder, as path: ByteString
  ) -> ContainerMetadata? {
    let file = path.appending(ContainerMetadata.fileName)
    guard let list = dictionary(ContainerMetadata.fileName, in: folder, as: file) else {
      return nil
    }
    checkContentClass(list, of: kind, as: file)
    let identifier = identifier("MCMMetadataIdentifier", of: list, as: file)
    if identifier == nil, list["MCMMetadataIdentifier"] == nil {
      warn(.wrongValue, file, "it has no MCMMetadataIdentifier")
    }
    return ContainerMetadata(
      identifier: identifier, uuid: string("MCMMetadataUUID", of: list, as: file))
  }

  /// Holds the content class against the place. Only 2, an app's data, is told by the platform's
  /// guide; the numbers of the other classes are not built on.
  private mutating func checkContentClass(
    _ list: PropertyList, of kind: ContainerKind, as file: ByteString
  ) {
    guard let number = list["MCMMetadataContentClass"]?.integerValue else { return }
    if (number == 2) != (kind == .data) {
      warn(
        .contradiction, file,
        "MCMMetadataContentClass is \(number), and its place is that of kind \(kind.rawValue), "
          + "which holds")
    }
  }

  private mutating func preferences(
    in folder: borrowing Folder, as path: ByteString
  ) -> [ByteString] {
    let ending = Array(".plist".utf8)
    do {
      guard try folder.statusIfPresent("Library")?.kind == .directory else { return [] }
      let library = try folder.folder("Library")
      guard try library.statusIfPresent("Preferences")?.kind == .directory else { return [] }
      let names = try library.folder("Preferences").names()
      return names.filter { $0.bytes.suffix(ending.count).elementsEqual(ending) }
        .map { ByteString($0.bytes.dropLast(ending.count)) }
        .filter { $0.bytes.contains(UInt8(ascii: ".")) && $0.bytes.first != UInt8(ascii: ".") }
    } catch {
      warn(
        .unreadable, path.appending("Library/Preferences"), "it cannot be read: \(error.reason)")
      return []
    }
  }
}
