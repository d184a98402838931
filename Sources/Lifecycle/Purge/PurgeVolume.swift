public import PolicyEngine
public import SandboxModel
public import SystemIO

/// A volume that a device's containers lie on, and what a purge does there.
public struct PurgeVolume: Sendable {
  /// The volume's device number.
  public let device: UInt64
  /// A container on it, for messages.
  public let path: ByteString
  public let space: VolumeSpace
  /// The severest of the policy's levels that is crossed.
  public let pressure: PressureLevel?
  /// What the levels would give, the mildest first.
  public let levels: [LevelGain]
  /// Whose orders and age hold; nil where nothing is to be done.
  public let term: PurgeTerm?
  /// Bytes that are to be gained; nil for all that may go.
  public let goal: UInt64?
  /// The units that go, by their places in the plan's, in order.
  public let chosen: [Int32]
  /// Bytes that the chosen units give back together.
  public let gain: UInt64

  /// What a level would give.
  public struct LevelGain: Sendable, Hashable {
    public let level: PressureLevel
    public let bytes: UInt64
    public let units: Int
  }

  /// Bytes of the goal that the chosen units do not give.
  public var missing: UInt64 {
    guard let goal, goal > gain else { return 0 }
    return goal - gain
  }

  /// The next severer level that would give more, with what it would give in all.
  public var next: LevelGain? {
    guard let level = term?.level else { return nil }
    return levels.first { $0.level > level && $0.bytes > gain }
  }
}

extension PurgePlan {
  /// Judges each volume by itself.
  func judgeVolumes() -> [PurgeVolume] {
    var devices: [(device: UInt64, path: ByteString)] = []
    for container in scan.containers {
      guard let root = container.entries.first, isWanted(container.container) else { continue }
      let device = root.status.identity.device
      if !devices.contains(where: { $0.device == device }) {
        devices.append((device, container.container.absolutePath))
      }
    }
    return devices.compactMap { device, path in
      request.spaces[device].map { volume(device, path, $0) }
    }
  }

  private func volume(_ device: UInt64, _ path: ByteString, _ space: VolumeSpace) -> PurgeVolume {
    let isFree = freeContainers()
    let own = units.indices.filter {
      isFree[Int(units[$0].container)] && self.device(of: units[$0]) == device
    }
    let levels = scan.policy.pressure.map { pressure in
      let term = PurgeTerm(pressure)
      let (taken, bytes) = take(own.filter { term.lets(units[$0], at: request.now) }, upTo: nil)
      return PurgeVolume.LevelGain(level: pressure.level, bytes: bytes, units: taken.count)
    }
    let crossed = scan.policy.pressure(on: space)
    let (term, goal) = task(crossed, space)
    var (chosen, gain): ([Int], UInt64) = ([], 0)
    if let term, goal != .some(0) {
      (chosen, gain) = take(own.filter { term.lets(units[$0], at: request.now) }, upTo: goal)
    }
    return PurgeVolume(
      device: device, path: path, space: space, pressure: crossed?.level, levels: levels,
      term: term, goal: goal, chosen: chosen.map(Int32.init), gain: gain)
  }

  /// On what terms a volume is purged, and how many bytes are to be gained (nil: all).
  private func task(_ crossed: Pressure?, _ space: VolumeSpace) -> (PurgeTerm?, UInt64?) {
    let named = request.level.flatMap { level in
      scan.policy.pressure.first { $0.level == level }
    }
    let medium = scan.policy.pressure.first { $0.level == .medium }
    let figures = (named ?? medium).map { PurgeTerm($0) } ?? .unlevelled
    switch request.goal {
    case .free(let bytes): return (figures, bytes)
    case .untilFree(let percent):
      return (figures, space.shortage(FreeSpace(percent: percent)))
    case .everything: return (figures, nil)
    case .byPressure:
      guard let crossed else { return (nil, 0) }
      return (PurgeTerm(crossed), space.shortage(crossed.reclaimTo))
    }
  }

  /// Takes units in order until they give so many bytes, or all; gives them and their bytes. A file
  /// with several names counts when the last of them is taken.
  private func take(_ places: [Int], upTo goal: UInt64?) -> ([Int], UInt64) {
    var (gain, taken): (UInt64, [Int]) = (0, [])
    var names: [FileIdentity: UInt32] = [:]
    for place in places {
      if let goal, gain >= goal { break }
      taken.append(place)
      gain += units[place].bytes
      if units[place].hasLinks { gain += lastNames(of: units[place], &names) }
    }
    return (taken, gain)
  }

  /// Bytes of files whose last names go with a unit, but for those that have all in it.
  private func lastNames(of unit: PurgeUnit, _ names: inout [FileIdentity: UInt32]) -> UInt64 {
    let scan = scan.containers[Int(unit.container)]
    var before: [FileIdentity: UInt32] = [:]
    var bytes: UInt64 = 0
    for member in members(of: unit) {
      let status = scan.entries[member].status
      guard status.links > 1, status.kind != .directory else { continue }
      if before[status.identity] == nil { before[status.identity] = names[status.identity] ?? 0 }
      names[status.identity, default: 0] += 1
      if names[status.identity] == status.links, before[status.identity] != 0 {
        bytes += status.allocated
      }
    }
    return bytes
  }
}

extension CompiledPolicy {
  /// The severest of the levels that a volume is below.
  fileprivate func pressure(on space: VolumeSpace) -> Pressure? {
    pressure.last { space.shortage($0.whenFreeBelow) > 0 }
  }
}

extension VolumeSpace {
  /// Bytes that a volume has less than it is to have.
  fileprivate func shortage(_ wanted: FreeSpace) -> UInt64 {
    let bytes = UInt64(clamping: wanted.bytes(ofVolume: Int64(clamping: total)))
    return bytes > available ? bytes - available : 0
  }
}

extension PurgeRequest.Goal {
  /// Whether one of a device's volumes is short of space, so that a purge has something to do: asks for
  /// the free space alone. A container that is not there any more is passed over.
  ///
  /// - Throws: when a volume cannot be asked.
  public func isUnmet(
    on device: Device, _ policy: CompiledPolicy
  ) throws(LifecycleError) -> Bool {
    for container in device.containers {
      do throws(SystemError) {
        if isUnmet(try Directory.open(resolved: container.absolutePath).space(), policy) {
          return true
        }
      } catch { if !error.isMissing { throw LifecycleError(error) } }
    }
    return false
  }

  private func isUnmet(_ space: VolumeSpace, _ policy: CompiledPolicy) -> Bool {
    switch self {
    case .free, .everything: true
    case .untilFree(let percent): space.shortage(FreeSpace(percent: percent)) > 0
    case .byPressure: policy.pressure(on: space) != nil
    }
  }
}
