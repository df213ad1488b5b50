"""Attributes that are made when first used, a single time whatever number of threads uses them first."""

from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any, Self, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class locked_property(cached_property[T_co]):  # noqa: N801 - a decorator, as cached_property is
    """A ``cached_property`` under a lock, which Python 3.12 took out of it.

    Without the lock, two threads whose first uses of a service overlap would each make one. Properties may use each
    other while they are made. Threads cannot wait for each other in a cycle: one thread could not make that either.
    """

    def __init__(self, func: Callable[[Any], T_co]) -> None:
        super().__init__(func)
        self._first_use = RLock()

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T_co: ...

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        with self._first_use:
            return super().__get__(instance, owner)
