// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iterator>
#include <map>
#include <memory>
#include <mutex>

namespace ct2triton {

// Values shared by key while they are in use. Thread-safe: a caller waits only while its own value
// is being made.
template <class Key, class Value>
class SharedByKey {
 public:
  // `make`: returns a new value; called if none of this key is in use; may throw.
  template <class Make>
  std::shared_ptr<Value> Get(const Key& key, const Make& make) {
    const auto place = PlaceOf(key);
    const std::lock_guard<std::mutex> lock(place->mutex);
    std::shared_ptr<Value> value = place->value.lock();
    if (!value) place->value = value = make();
    return value;
  }

 private:
  struct Place {
    std::mutex mutex;  // held while the value is made
    std::weak_ptr<Value> value;
  };

  std::shared_ptr<Place> PlaceOf(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = places_.begin(); it != places_.end();) {
      const bool unused = it->second.use_count() == 1 && it->second->value.expired();
      it = unused ? places_.erase(it) : std::next(it);
    }
    auto& place = places_[key];
    if (!place) place = std::make_shared<Place>();
    return place;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Place>> places_;
};

}  // namespace ct2triton
