public import SystemIO

/// The files that a platform writes into a container, made anew where a container is made.
public enum MadeMetadata {
  /// The files of a container, by name, for the directory of that name; none for layouts that write
  /// none.
  ///
  /// What is stored of the file stays, but for the UUID where the directory is another: a container that
  /// is made in another directory is another one. Without a stored file it has the identifier, the UUID and, of an app's data,
  /// the content class (docs/platforms in the design: only that number is told by a guide).
  ///
  /// - Throws: where an identifier cannot be written.
  public static func files(
    of kind: ContainerKind, identifier: ByteString?, uuid: ByteString, layout: Layout,
    stored: [UInt8]?, isSameDirectory: Bool
  ) throws(ModelError) -> [ByteString: [UInt8]] {
    guard layout == .coreSimulator else { return [:] }
    let list = stored.flatMap { try? PropertyList(reading: $0) }
    // As it was stored, with its times: nothing is written anew.
    if stored != nil, isSameDirectory { return [:] }
    if let members = list?.dictionaryValue {
      let others = members.filter { $0.key != "MCMMetadataUUID" }
      let all = others + [PropertyList.Member("MCMMetadataUUID", .string(uuid))]
      return [ContainerMetadata.fileName: try PropertyList.dictionary(all).binary()]
    }
    guard let identifier, !identifier.isEmpty else { return [:] }
    var members = [
      PropertyList.Member("MCMMetadataIdentifier", .string(identifier)),
      PropertyList.Member("MCMMetadataUUID", .string(uuid)),
    ]
    if kind == .data { members.append(PropertyList.Member("MCMMetadataContentClass", .integer(2))) }
    return [ContainerMetadata.fileName: try PropertyList.dictionary(members).binary()]
  }

  /// The names of such files, which a snapshot may hold.
  public static func names(of layout: Layout) -> [ByteString] {
    layout == .coreSimulator ? [ContainerMetadata.fileName] : []
  }
}
