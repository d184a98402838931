internal import SystemIO

/// Where the containers of a snapshot are on the device that it is restored to, so that symbolic
/// links that name one by its UUID or by its place lead there again (docs/restore.md, "Links").
struct LinkAnchors: Sendable {
  /// A container that links may name.
  struct Anchor: Sendable, Hashable {
    /// The name of its directory, where the platform made it.
    let uuid: ByteString?
    /// Where it lay.
    let from: ByteString
    /// Where it is now.
    let to: ByteString
  }

  /// What a link's target is.
  enum Target: Equatable {
    /// It is relative, or leads where it led.
    case unchanged
    /// It named a container of the snapshot, and leads to it like this now.
    case own(ByteString)
    /// It is absolute and names no container that is known here.
    case foreign
  }

  private var byUUID: [ByteString: Anchor] = [:]
  private var byPlace: [ByteString: Anchor] = [:]

  init(_ anchors: [Anchor] = []) {
    for anchor in anchors {
      if let uuid = anchor.uuid { byUUID[uuid] = anchor }
      byPlace[anchor.from] = byPlace[anchor.from] ?? anchor
    }
  }

  /// What becomes of a link's target.
  func target(of link: ByteString) -> Target {
    guard link.isAbsolute else { return .unchanged }
    let parts = link.components
    if let index = parts.firstIndex(where: { byUUID[$0] != nil }), let anchor = byUUID[parts[index]]
    {
      return leads(link, to: named(link, parts, index, anchor))
    }
    // The innermost place that holds a target is the one that is meant.
    guard let anchor = link.andParents.lazy.compactMap({ byPlace[$0] }).first else {
      return .foreign
    }
    return leads(link, to: moved(link, anchor))
  }

  private func leads(_ link: ByteString, to target: ByteString) -> Target {
    target == link ? .unchanged : .own(target)
  }

  /// A target as this host sees it moves with the container; one as the device itself sees it
  /// (`/var/mobile/Containers/…`) gets the new UUID in the place of the old.
  private func named(
    _ link: ByteString, _ parts: [ByteString], _ index: Int, _ anchor: Anchor
  ) -> ByteString {
    if link.isWithin(anchor.from) { return moved(link, anchor) }
    var parts = parts
    parts[index] = anchor.to.lastComponent ?? parts[index]
    let joined = parts.map(\.bytes).joined(separator: [UInt8(ascii: "/")])
    return ByteString("/").appending(ByteString(joined))
  }

  private func moved(_ link: ByteString, _ anchor: Anchor) -> ByteString {
    let rest = link.bytes.dropFirst(anchor.from.count).drop { $0 == UInt8(ascii: "/") }
    return anchor.to.appending(ByteString(rest))
  }
}
