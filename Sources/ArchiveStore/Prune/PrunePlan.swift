public import Codecs
internal import SystemIO

/// The packs that a prune removes or rewrites, with the reason for each.
///
/// A pack without used data is removed. Of the others a pack is rewritten if more than half of it
/// is unused; then those with the largest unused share, until the limit for unused data is met; and
/// small packs if there are many (docs/repository-format.md, "Prune").
public struct PrunePlan: Sendable {
  /// The treatment of a pack.
  public enum Action: String, Sendable {
    case keep
    /// Its used data moves to new packs, with the unused data of some frames; then it is removed.
    case rewrite
    case remove
  }

  /// The reason for a treatment.
  public enum Reason: String, Sendable, CaseIterable {
    /// No snapshot needs any of its data.
    case unused
    /// More than half of it is unused.
    case mostlyUnused = "mostly-unused"
    /// All packs together have more unused data than the limit allows.
    case limit
    /// It is one of many small packs.
    case small
    /// No index object names it: a backup ended before it was complete.
    case notIndexed = "not-indexed"
  }

  /// A pack with its data, by stored bytes.
  public struct Pack: Sendable {
    public let id: Digest
    /// The size of the file in bytes.
    public let size: UInt64
    /// The stored bytes of blobs that snapshots need, and of all others. Tables are in neither.
    public let used: UInt64
    public let unused: UInt64
    public let usedBlobs: Int
    public let unusedBlobs: Int
    /// Whether it holds file contents; otherwise trees and lists.
    public let hasData: Bool
    public internal(set) var action = Action.keep
    public internal(set) var reason: Reason?
    /// For a rewritten pack, the unused bytes of frames that move unchanged.
    public internal(set) var moved: UInt64 = 0
    var unusedByShare = UnusedShare.Bytes()
  }

  /// All packs, ordered by id. Condemned packs are not among them.
  public internal(set) var packs: [Pack] = []
  /// The unused share up to which frames of rewritten packs move as they are.
  private(set) var movedShare = UnusedShare.none

  /// The packs of an action.
  public func packs(_ action: Action) -> [Pack] { packs.filter { $0.action == action } }

  /// Returns the sum of a property of stored bytes over the packs of an action.
  public func bytes(_ action: Action, _ property: KeyPath<Pack, UInt64>) -> UInt64 {
    packs(action).reduce(0) { $0 + $1[keyPath: property] }
  }

  /// The bytes that the plan frees: removed packs, and unused data of rewritten ones that does not
  /// move.
  public var freedBytes: UInt64 {
    bytes(.remove, \.size) + bytes(.rewrite, \.unused) - bytes(.rewrite, \.moved)
  }

  /// Whether nothing is to be done.
  public var isIdle: Bool { packs.allSatisfy { $0.action == .keep } }
}

extension PrunePlan {
  /// Plans for the packs of an index and what is used of them.
  ///
  /// - Parameter orphans: the packs that no index object names and that may be removed, by size.
  init(_ search: UsedBlobSearch, orphans: [Digest: UInt64], _ request: PruneRequest) {
    packs = PackUsage.packs(of: search)
    packs += orphans.map { id, size in
      Pack(
        id: id, size: size, used: 0, unused: size, usedBlobs: 0, unusedBlobs: 0, hasData: true,
        action: .remove, reason: .notIndexed)
    }
    packs.sort { $0.id < $1.id }
    let damaged = search.index.packs(in: .damaged)
    removeUnused()
    let candidates = packs.indices.filter {
      packs[$0].action == .keep && !damaged.contains(packs[$0].id)
    }
    rewriteUnused(candidates, request.maxUnused)
    combineSmall(candidates, from: request.smallPacks)
    moveFrames(request.maxUnused)
  }

  private mutating func removeUnused() {
    for number in packs.indices where packs[number].usedBlobs == 0 && packs[number].reason == nil {
      (packs[number].action, packs[number].reason) = (.remove, .unused)
    }
  }

  /// Rewrites packs that are mostly unused, then others while there is more unused data than the
  /// limit.
  private mutating func rewriteUnused(_ candidates: [Int], _ limit: PruneRequest.UnusedLimit) {
    guard limit != .unlimited else { return }
    let used = packs.reduce(0) { $0 + $1.used }
    var unused = packs.filter { $0.action == .keep }.reduce(0) { $0 + $1.unused }
    let byShare = candidates.filter { packs[$0].unused > 0 }.sorted { left, right in
      let (left, right) = (packs[left], packs[right])
      let shares = (left.unusedShare, right.unusedShare)
      return shares.0 == shares.1 ? left.id < right.id : shares.0 > shares.1
    }
    for number in byShare {
      let isMostlyUnused = packs[number].unused > packs[number].used
      guard isMostlyUnused || unused > limit.bytes(beside: used) else { break }
      packs[number].action = .rewrite
      packs[number].reason = isMostlyUnused ? .mostlyUnused : .limit
      unused -= packs[number].unused
    }
  }

  /// Rewrites the small packs of a kind if there are more than `most`.
  private mutating func combineSmall(_ candidates: [Int], from most: Int?) {
    guard let most else { return }
    for hasData in [true, false] {
      let small = candidates.filter {
        packs[$0].action == .keep && packs[$0].hasData == hasData
          && packs[$0].size < PruneRequest.smallPackSize
      }
      guard small.count > most else { continue }
      for number in small { (packs[number].action, packs[number].reason) = (.rewrite, .small) }
    }
  }

  /// Lets the frames of rewritten packs with the smallest unused share move unchanged, as far as
  /// the limit allows: moving a frame costs a fraction of compressing its used data again.
  private mutating func moveFrames(_ limit: PruneRequest.UnusedLimit) {
    let allowed = limit.bytes(beside: packs.map(\.used).clampedSum)
    let kept = bytes(.keep, \.unused)
    var frames = UnusedShare.Bytes()
    for pack in packs(.rewrite) { frames.add(pack.unusedByShare) }
    movedShare = allowed > kept ? frames.share(within: allowed - kept) : .none
    for number in packs.indices where packs[number].action == .rewrite {
      packs[number].moved = packs[number].unusedByShare.total(upTo: movedShare)
    }
  }
}

extension PrunePlan {
  /// Lets no unused data of some packs move, for a volume without room for it.
  mutating func moveNoUnused(of ids: Set<Digest>) {
    movedShare = .none
    for number in packs.indices where ids.contains(packs[number].id) { packs[number].moved = 0 }
  }
}

extension PrunePlan.Pack {
  fileprivate var unusedShare: Double { Double(unused) / Double(max(1, used + unused)) }
}

extension PruneRequest.UnusedLimit {
  /// Returns the unused bytes that may stay beside `used` bytes.
  fileprivate func bytes(beside used: UInt64) -> UInt64 {
    switch self {
    case .fraction(let fraction):
      // A fraction just below 1 allows more than a size can be.
      UInt64(exactly: (Double(used) * fraction / (1 - fraction)).rounded(.down)) ?? .max
    case .bytes(let bytes): bytes
    case .unlimited: .max
    }
  }
}
