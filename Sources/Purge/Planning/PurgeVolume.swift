internal import DeviceScan
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// A volume with containers of the device, and the planned purge of it.
package struct PurgeVolume: Sendable {
  /// The volume's device number.
  package let device: UInt64
  /// The path of a container on the volume, for messages.
  package let path: ByteString
  package let space: VolumeSpace
  /// The most severe crossed level of the policy.
  package let pressure: Pressure.Level?
  /// The gain of each level, the mildest first.
  package let levels: [LevelGain]
  /// The terms whose orders and age apply; nil if nothing has to be done.
  package let term: Term?
  /// The goal in bytes; nil to delete everything that may be deleted.
  package let goal: UInt64?
  /// The chosen units in order, by their indices in the plan.
  package let chosen: [Int32]
  /// The bytes that the volume gains from the chosen units together.
  package let gain: UInt64

  /// The gain of a level.
  package struct LevelGain: Sendable, Hashable {
    package let level: Pressure.Level
    package let bytes: UInt64
    package let units: Int
  }

  /// The terms of a pressure level: the orders that it allows, and the minimum age.
  package struct Term: Sendable, Hashable {
    /// The level; nil for a policy without levels.
    package let level: Pressure.Level?
    /// The orders; nil for all.
    let orders: Set<UInt16>?
    /// The minimum time since the last use, in seconds.
    package let minimumAge: Int64

    init(_ pressure: Pressure) {
      (level, orders, minimumAge) = (pressure.level, pressure.orders, pressure.minimumAge)
    }

    private init() { (level, orders, minimumAge) = (nil, nil, 7 * PurgeUnit.Age.day) }

    /// The terms for a policy without levels: every order, unused for a week.
    static let unlevelled = PurgeVolume.Term()

    func allows(_ unit: PurgeUnit, at now: Timestamp) -> Bool {
      (orders?.contains(unit.terms.order) ?? true) && max(0, unit.age(at: now)) >= minimumAge
    }
  }

  /// The bytes of the goal that the chosen units do not provide.
  package var missing: UInt64 {
    guard let goal, goal > gain else { return 0 }
    return goal - gain
  }

  /// The next more severe level with a higher gain, and its total gain.
  package var next: LevelGain? {
    guard let level = term?.level else { return nil }
    return levels.first { $0.level > level && $0.bytes > gain }
  }
}

extension PurgePlan {
  /// Returns the volumes, each judged separately.
  func makeVolumes() -> [PurgeVolume] {
    var devices: [(device: UInt64, path: ByteString)] = []
    for container in scan.containers {
      guard let root = container.entries.first, isWanted(container.container) else { continue }
      let device = root.status.identity.device
      if !devices.contains(where: { $0.device == device }) {
        devices.append((device, container.container.absolutePath))
      }
    }
    return devices.compactMap { device, path in
      request.spaces[device].map { volume(device, at: path, space: $0) }
    }
  }

  private func volume(
    _ device: UInt64, at path: ByteString, space: VolumeSpace
  ) -> PurgeVolume {
    let isFree = freeContainers()
    let own = units.indices.filter {
      isFree[Int(units[$0].container)] && self.device(of: units[$0]) == device
    }
    let levels = scan.policy.pressure.map { pressure in
      let term = PurgeVolume.Term(pressure)
      let (chosen, bytes) = choose(
        own.filter { term.allows(units[$0], at: request.now) }, upTo: nil)
      return PurgeVolume.LevelGain(level: pressure.level, bytes: bytes, units: chosen.count)
    }
    let crossed = scan.policy.pressure(on: space)
    let (term, goal) = task(crossed, space)
    var (chosen, gain): ([Int], UInt64) = ([], 0)
    if let term, goal != .some(0) {
      (chosen, gain) = choose(own.filter { term.allows(units[$0], at: request.now) }, upTo: goal)
    }
    return PurgeVolume(
      device: device, path: path, space: space, pressure: crossed?.level, levels: levels,
      term: term, goal: goal, chosen: chosen.map(Int32.init), gain: gain)
  }

  /// Returns the terms of a volume's purge and the goal in bytes (nil for everything).
  private func task(_ crossed: Pressure?, _ space: VolumeSpace) -> (PurgeVolume.Term?, UInt64?) {
    let named = request.level.flatMap { level in
      scan.policy.pressure.first { $0.level == level }
    }
    let medium = scan.policy.pressure.first { $0.level == .medium }
    let figures = (named ?? medium).map { PurgeVolume.Term($0) } ?? .unlevelled
    switch request.goal {
    case .free(let bytes): return (figures, bytes)
    case .untilFree(let percent):
      return (figures, space.shortage(Pressure.FreeSpace(percent: percent)))
    case .everything: return (figures, nil)
    case .byPressure:
      guard let crossed else { return (nil, 0) }
      return (PurgeVolume.Term(crossed), space.shortage(crossed.reclaimTo))
    }
  }

  /// Chooses units in order until they provide `goal` bytes, or all units. Returns them and their
  /// bytes. A hard-linked file counts once its last name is chosen.
  private func choose(_ candidates: [Int], upTo goal: UInt64?) -> ([Int], UInt64) {
    var (gain, chosen): (UInt64, [Int]) = (0, [])
    var names: [FileIdentity: UInt32] = [:]
    for index in candidates {
      if let goal, gain >= goal { break }
      chosen.append(index)
      gain += units[index].bytes
      if units[index].hasLinks { gain += lastNames(of: units[index], &names) }
    }
    return (chosen, gain)
  }

  /// Returns the bytes of files whose last names are in a unit, except files that have all names in
  /// it.
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
  /// Returns the most severe level whose threshold a volume is below.
  fileprivate func pressure(on space: VolumeSpace) -> Pressure? {
    pressure.last { space.shortage($0.whenFreeBelow) > 0 }
  }
}

extension VolumeSpace {
  /// Returns the number of bytes missing from the required free space.
  fileprivate func shortage(_ wanted: Pressure.FreeSpace) -> UInt64 {
    let bytes = UInt64(clamping: wanted.bytes(ofVolume: Int64(clamping: total)))
    return bytes > available ? bytes - available : 0
  }
}

extension PurgeRequest.Goal {
  /// Returns whether a volume of the device is short of space, so that a purge has something to do.
  /// Reads the free space only. A container that no longer exists is skipped.
  ///
  /// - Throws: `OperationError` if the space of a volume cannot be read.
  package func isUnmet(
    on device: Device, _ policy: CompiledPolicy
  ) throws(OperationError) -> Bool {
    for container in device.containers {
      do throws(SystemError) {
        if isUnmet(try Directory.open(resolved: container.absolutePath).space(), policy) {
          return true
        }
      } catch { if !error.isMissing { throw OperationError(error) } }
    }
    return false
  }

  private func isUnmet(_ space: VolumeSpace, _ policy: CompiledPolicy) -> Bool {
    switch self {
    case .free, .everything: true
    case .untilFree(let percent): space.shortage(Pressure.FreeSpace(percent: percent)) > 0
    case .byPressure: policy.pressure(on: space) != nil
    }
  }
}
