internal import SandboxModel
package import SystemIO

/// The locations of a snapshot's containers on the device to restore to. Symbolic links that name a
/// container by its UUID or by its location are adjusted to them (docs/restore.md, "Links").
package struct LinkAnchors: Sendable {
  /// A container that links may refer to.
  package struct Anchor: Sendable, Hashable {
    /// The name of its directory, if the platform assigned it.
    let uuid: ByteString?
    /// Its location in the snapshot's device.
    let from: ByteString
    /// Its present location.
    let to: ByteString

    /// Creates an anchor.
    package init(uuid: ByteString?, from: ByteString, to: ByteString) {
      self.uuid = uuid
      self.from = from
      self.to = to
    }
  }

  /// The classification of a link's target.
  package enum Target: Equatable {
    /// The target is relative, or its location is unchanged.
    case unchanged
    /// The target is in a container of the snapshot; the associated value is its present location.
    case own(ByteString)
    /// The target is absolute and in no known container.
    case foreign
  }

  private var byUUID: [ByteString: Anchor] = [:]
  private var bySource: [ByteString: Anchor] = [:]

  package init(_ anchors: [Anchor] = []) {
    for anchor in anchors {
      if let uuid = anchor.uuid { byUUID[uuid] = anchor }
      bySource[anchor.from] = bySource[anchor.from] ?? anchor
    }
  }

  /// Returns the classification of a link's target.
  package func target(of link: ByteString) -> Target {
    guard link.isAbsolute else { return .unchanged }
    let parts = link.components
    if let index = parts.firstIndex(where: { byUUID[$0] != nil }), let anchor = byUUID[parts[index]]
    {
      return leads(link, to: named(link, parts: parts, at: index, anchor: anchor))
    }
    // If containers are nested, the innermost one contains the target.
    guard let anchor = link.andParents.lazy.compactMap({ bySource[$0] }).first else {
      return .foreign
    }
    return leads(link, to: moved(link, anchor))
  }

  private func leads(_ link: ByteString, to target: ByteString) -> Target {
    target == link ? .unchanged : .own(target)
  }

  /// Returns the new target of a link that contains a container's UUID. A target in the host's view
  /// moves with the container; in one in the device's own view (`/var/mobile/Containers/…`) the new
  /// UUID replaces the old one. An `.xcappdata` has no path in that view: its links keep the old
  /// UUID, by which they are adjusted on the next device. Containers of macOS (`ID/Data`) have no
  /// UUID and are seen at their real paths; so are containers in the safe harbor, until an app
  /// adopts them.
  private func named(
    _ link: ByteString, parts: [ByteString], at index: Int, anchor: Anchor
  ) -> ByteString {
    if link.isWithin(anchor.from) { return moved(link, anchor) }
    if anchor.to.parent.hasSuffix(".xcappdata") { return link }
    let isWaiting = anchor.to.components.contains(OwnNames.directory)
    if isWaiting || anchor.to.lastComponent == "Data" {
      return anchor.to.appending(ByteString(joining: parts[(index + 1)...]))
    }
    var parts = parts
    parts[index] = anchor.to.lastComponent ?? parts[index]
    return ByteString(joining: parts, isAbsolute: true)
  }

  private func moved(_ link: ByteString, _ anchor: Anchor) -> ByteString {
    anchor.to.appending(link.relative(to: anchor.from))
  }
}
