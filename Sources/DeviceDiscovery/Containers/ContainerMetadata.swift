internal import Codecs
package import SandboxModel
package import SystemIO

/// The metadata that the platform's container manager writes into a container.
package struct ContainerMetadata {
  /// The file name in iOS containers.
  static let fileName: ByteString = ".com.apple.mobile_container_manager.metadata.plist"
  /// The file name in macOS containers.
  static let desktopFile: ByteString = ".com.apple.containermanagerd.metadata.plist"

  var identifier: BundleIdentifier?
  /// The UUID in the file, usually the name of the container's directory.
  var uuid: ByteString?
}

// MARK: - Writing

extension ContainerMetadata {
  /// Returns the metadata files of a container, by name; empty for layouts without such files.
  ///
  /// A stored file is preserved except for the UUID, which is replaced if the container has a new
  /// directory. Without a stored file, the result contains the identifier, the UUID and, for an
  /// app's data, the content class (docs/platforms in the design: the platform guide documents only
  /// that number).
  ///
  /// - Throws: `ModelError` if an identifier cannot be written.
  package static func files(
    of kind: ContainerKind, identifier: ByteString?, uuid: ByteString, layout: Layout,
    stored: [UInt8]?, isSameDirectory: Bool
  ) throws(ModelError) -> [ByteString: [UInt8]] {
    guard layout == .coreSimulator else { return [:] }
    let list = stored.flatMap { try? PropertyList(reading: $0) }
    // The restored file remains unchanged, including its times.
    if stored != nil, isSameDirectory { return [:] }
    if let members = list?.dictionaryValue {
      let others = members.filter { $0.key != "MCMMetadataUUID" }
      let all = others + [PropertyList.Member("MCMMetadataUUID", try string(uuid))]
      return [fileName: try binary(all)]
    }
    guard let identifier, !identifier.isEmpty else { return [:] }
    var members = [
      PropertyList.Member("MCMMetadataIdentifier", try string(identifier)),
      PropertyList.Member("MCMMetadataUUID", try string(uuid)),
    ]
    if kind == .data { members.append(PropertyList.Member("MCMMetadataContentClass", .integer(2))) }
    return [fileName: try binary(members)]
  }

  private static func string(_ text: ByteString) throws(ModelError) -> PropertyList {
    guard let string = text.utf8 else {
      throw ModelError(
        .propertyList, ModelError.writingPropertyList, reason: "'\(text)' is not UTF-8")
    }
    return .string(string)
  }

  private static func binary(_ members: [PropertyList.Member]) throws(ModelError) -> [UInt8] {
    do {
      return try PropertyList.dictionary(members).binary()
    } catch {
      throw ModelError(writing: error)
    }
  }

  /// Returns the names of the metadata files of a layout, which snapshots can contain.
  package static func names(of layout: Layout) -> [ByteString] {
    layout == .coreSimulator ? [fileName] : []
  }
}
